/* tests/cli/schema_check.c: does a JSON document fit a schema? `schema_check SCHEMA.json < document`.
 *
 * Knows the part of JSON Schema our schemas use: type (one name or a list), properties, required,
 * additionalProperties (false or a schema), items, enum, minimum, maximum. An unknown keyword is an error: a schema that
 * silently checks nothing would be a test that cannot fail.
 */
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static int complaints;

static void complain(const char *path, const char *what)
{
    complaints++;
    fprintf(stderr, "%s: %s\n", path[0] ? path : "/", what);
}

static bool has_type(const json_t *value, const char *type)
{
    if (strcmp(type, "object") == 0)
        return json_is_object(value);
    if (strcmp(type, "array") == 0)
        return json_is_array(value);
    if (strcmp(type, "string") == 0)
        return json_is_string(value);
    if (strcmp(type, "integer") == 0)
        return json_is_integer(value);
    if (strcmp(type, "number") == 0)
        return json_is_number(value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    if (strcmp(type, "null") == 0)
        return json_is_null(value);
    return false;
}

static void check(const json_t *schema, const json_t *value, const char *path);

static void check_type(const json_t *type, const json_t *value, const char *path)
{
    bool fits = json_is_string(type) && has_type(value, json_string_value(type));
    for (size_t i = 0; json_is_array(type) && i < json_array_size(type); i++)
        fits |= has_type(value, json_string_value(json_array_get(type, i)));
    if (!fits)
        complain(path, "has the wrong type");
}

static void check_object(const json_t *schema, const json_t *value, const char *path)
{
    json_t *properties = json_object_get(schema, "properties"),
           *rest = json_object_get(schema, "additionalProperties");
    json_t *required = json_object_get(schema, "required"), *member;
    const char *key;
    char inner[512];
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i)))) {
            snprintf(inner, sizeof inner, "%.300s/%s", path, json_string_value(json_array_get(required, i)));
            complain(inner, "is missing");
        }
    json_object_foreach((json_t *)value, key, member)
    {
        json_t *sub = json_object_get(properties, key);
        snprintf(inner, sizeof inner, "%.300s/%.200s", path, key);
        if (!sub && json_is_false(rest))
            complain(inner, "is not in the schema");
        else if (sub || json_is_object(rest))
            check(sub ? sub : rest, member, inner);
    }
}

static void check(const json_t *schema, const json_t *value, const char *path)
{
    static const char *const known[] = {
        "$schema", "title", "description", "type",   "properties", "required", "additionalProperties",
        "items",   "enum",  "minimum",     "maximum"};
    const char *key;
    json_t *rule;
    json_object_foreach((json_t *)schema, key, rule)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= strcmp(known[i], key) == 0;
        if (!found)
            complain(key, "is a schema keyword this checker does not know");
    }
    if ((rule = json_object_get(schema, "type")))
        check_type(rule, value, path);
    if ((rule = json_object_get(schema, "minimum")) && json_is_number(value) &&
        json_number_value(value) < json_number_value(rule))
        complain(path, "is below the minimum");
    if ((rule = json_object_get(schema, "maximum")) && json_is_number(value) &&
        json_number_value(value) > json_number_value(rule))
        complain(path, "is above the maximum");
    if ((rule = json_object_get(schema, "enum"))) {
        bool found = false;
        for (size_t i = 0; i < json_array_size(rule); i++)
            found |= json_equal(json_array_get(rule, i), value);
        if (!found)
            complain(path, "is not one of the allowed values");
    }
    if (json_is_object(value))
        check_object(schema, value, path);
    if (json_is_array(value) && (rule = json_object_get(schema, "items")))
        for (size_t i = 0; i < json_array_size(value); i++) {
            char inner[512];
            snprintf(inner, sizeof inner, "%.400s/%zu", path, i);
            check(rule, json_array_get(value, i), inner);
        }
}

int main(int argc, char **argv)
{
    json_error_t error;
    if (argc != 2)
        return 2;
    json_t *schema = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
    if (!schema) {
        fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text);
        return 1;
    }
    json_t *value = json_loadf(stdin, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
    if (!value) {
        fprintf(stderr, "standard input:%d: %s\n", error.line, error.text);
        return 1;
    }
    check(schema, value, "");
    json_decref(schema);
    json_decref(value);
    return complaints ? 1 : 0;
}
