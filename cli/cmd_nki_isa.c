/* cli/cmd_nki_isa.c: `frontier nki isa` and `frontier nki rules`: the core's tables for people, markdown and
 * scripts.
 *
 * Both read what the simulator itself works from (fr_neuron_instructions, fr_neuron_rules), so the manual
 * cannot say anything the simulator does not do. No Python is needed.
 */
#include <string.h>

#include "commands.h"
#include "frontier/neuron.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option isa_options[] = {
    {"markdown", CLI_FLAG, NULL, NULL, "print a page of docs/isa", false, false},
};

static const char *const kind_words[] = {
    [FR_NEURON_READ] = "tensor",
    [FR_NEURON_WRITE] = "tensor, written",
    [FR_NEURON_UPDATE] = "tensor, read and written",
    [FR_NEURON_READ_LIST] = "list of tensors",
    [FR_NEURON_READ_OR_NUMBER] = "number, register or [P, 1] tensor",
    [FR_NEURON_NUMBER] = "number",
    [FR_NEURON_NUMBER_LIST] = "list of numbers",
    [FR_NEURON_INTEGER] = "integer",
    [FR_NEURON_INTEGER_LIST] = "list of integers",
    [FR_NEURON_FLAG] = "flag",
    [FR_NEURON_OPERATOR] = "ALU operator",
    [FR_NEURON_FUNCTION] = "activation function",
    [FR_NEURON_ENGINE] = "engine",
    [FR_NEURON_REDUCE_COMMAND] = "reduce command",
    [FR_NEURON_CHOICE] = "one of",
    [FR_NEURON_PATTERN] = "list of [step, count]",
};

static void engines_of(const fr_neuron_instruction *instruction, char *out, size_t size)
{
    out[0] = 0;
    for (int e = FR_NEURON_TENSOR; e < FR_NEURON_ENGINES; e++)
        if (instruction->engines & 1u << e)
            snprintf(out + strlen(out), size - strlen(out), "%s%s", out[0] ? ", " : "",
                     fr_neuron_engine_name((fr_neuron_engine)e));
}

static int parameter_count(const fr_neuron_instruction *instruction)
{
    int count = 0;
    while (count < FR_NEURON_PARAMETERS && instruction->parameters[count].name)
        count++;
    return count;
}

static const char *text_or(const char *text)
{
    return text && text[0] ? text : "-";
}

static void signature(cli_run *run, const fr_neuron_instruction *instruction)
{
    cli_print(run, "nisa.%s(", instruction->name);
    for (int i = 0; i < parameter_count(instruction); i++)
        cli_print(run, "%s%s%s", i ? ", " : "", instruction->parameters[i].name,
                  instruction->parameters[i].required ? "" : "=...");
    cli_print(run, ")\n");
}

static void print_parameters(cli_run *run, const fr_neuron_instruction *instruction, bool markdown)
{
    for (int i = 0; i < parameter_count(instruction); i++) {
        const fr_neuron_parameter *p = &instruction->parameters[i];
        char kind[300];
        snprintf(kind, sizeof kind, "%s%s%s%s", kind_words[p->kind], p->kind == FR_NEURON_CHOICE ? ": " : "",
                 p->kind == FR_NEURON_CHOICE && p->choices ? p->choices : "",
                 p->required ? "" : " (optional)");
        if (markdown)
            cli_print(run, "| `%s` | %s | %s |\n", p->name, kind, text_or(p->text));
        else
            cli_print(run, "  %-12s %s: %s\n", p->name, kind, text_or(p->text));
    }
}

static void print_plain(cli_run *run, const fr_neuron_instruction *instruction)
{
    char engines[200];
    engines_of(instruction, engines, sizeof engines);
    signature(run, instruction);
    cli_print(run, "  %s\n\n  engines      %s, NeuronCore v%d and later\n", text_or(instruction->summary),
              engines, instruction->least_generation > 2 ? instruction->least_generation : 2);
    print_parameters(run, instruction, false);
    cli_print(run, "\n  semantics    %s\n  limits       %s\n  cost         %s%s\n  source       %s\n",
              text_or(instruction->semantics), text_or(instruction->limits), text_or(instruction->cost),
              instruction->cost_guessed ? " (a guess)" : "", text_or(instruction->cost_source));
    cli_print(run, "\n  example\n");
    for (const char *line = instruction->example; line && *line;) {
        size_t length = strcspn(line, "\n");
        cli_print(run, "    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void print_markdown(cli_run *run, const fr_neuron_instruction *instruction)
{
    char engines[200];
    engines_of(instruction, engines, sizeof engines);
    cli_print(run, "# nisa.%s\n\n%s\n\n```python\n", instruction->name, text_or(instruction->summary));
    signature(run, instruction);
    cli_print(
        run, "```\n\nEngines: %s. NeuronCore v%d and later.\n\n| operand | kind | meaning |\n|---|---|---|\n",
        engines, instruction->least_generation > 2 ? instruction->least_generation : 2);
    print_parameters(run, instruction, true);
    cli_print(run, "\n## Semantics\n\n%s\n\n## Limits\n\n%s\n\n## Cost\n\n%s%s\n\nSource: %s\n",
              text_or(instruction->semantics), text_or(instruction->limits), text_or(instruction->cost),
              instruction->cost_guessed ? " This is a guess." : "", text_or(instruction->cost_source));
    cli_print(run,
              "\n## Example\n\nTiles `a`, `b`, `c` are 128 x 64 float32 in SBUF.\n\n```python\n%s\n```\n",
              text_or(instruction->example));
}

static json_t *parameters_json(const fr_neuron_instruction *instruction)
{
    json_t *list = json_array();
    for (int i = 0; i < parameter_count(instruction); i++) {
        const fr_neuron_parameter *p = &instruction->parameters[i];
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:b,s:s}", "name", p->name, "kind", kind_words[p->kind],
                                        "required", p->required, "text", p->text ? p->text : ""));
    }
    return list;
}

static json_t *instruction_json(const fr_neuron_instruction *instruction)
{
    char engines[200];
    engines_of(instruction, engines, sizeof engines);
    return json_pack("{s:s,s:s,s:s,s:i,s:s,s:s,s:s,s:s,s:b,s:s,s:o}", "name", instruction->name, "summary",
                     text_or(instruction->summary), "engines", engines, "least_generation",
                     instruction->least_generation, "semantics", text_or(instruction->semantics), "limits",
                     text_or(instruction->limits), "cost", text_or(instruction->cost), "cost_source",
                     text_or(instruction->cost_source), "cost_guessed", instruction->cost_guessed, "example",
                     text_or(instruction->example), "parameters", parameters_json(instruction));
}

static void print_instruction(cli_run *run, const fr_neuron_instruction *instruction)
{
    if (cli_flag(run, "markdown"))
        print_markdown(run, instruction);
    else
        print_plain(run, instruction);
}

static fr_status unknown_instruction(const char *name, fr_error *error)
{
    int count;
    const char *names[256];
    char hint[200];
    const fr_neuron_instruction *const *table = fr_neuron_instructions(&count);
    for (int i = 0; i < count && i < COUNT(names); i++)
        names[i] = table[i]->name;
    const char *nearest = fr_nearest(name, names, (size_t)(count < COUNT(names) ? count : COUNT(names)));
    if (nearest)
        snprintf(hint, sizeof hint, "did you mean '%s'?", nearest);
    else
        snprintf(hint, sizeof hint, "'frontier nki isa' lists them");
    return fr_error_set(error, FR_BAD_USAGE, name, hint, "unknown instruction");
}

static fr_status run_isa(cli_run *run, fr_error *error)
{
    int count;
    const fr_neuron_instruction *const *table = fr_neuron_instructions(&count);
    json_t *list = json_array();
    cli_put(run, "instructions", list);
    if (run->argument_count == 1) {
        const fr_neuron_instruction *one = fr_neuron_instruction_named(run->arguments[0]);
        if (!one)
            return unknown_instruction(run->arguments[0], error);
        json_array_append_new(list, instruction_json(one));
        print_instruction(run, one);
        return FR_OK;
    }
    for (int i = 0; i < count; i++) {
        json_array_append_new(list, instruction_json(table[i]));
        if (cli_flag(run, "markdown"))
            print_markdown(run, table[i]);
        else
            cli_print(run, "  %-26s %s\n", table[i]->name, text_or(table[i]->summary));
    }
    return FR_OK;
}

static void print_rule(cli_run *run, json_t *list, const fr_neuron_rule *rule)
{
    bool first = json_array_size(list) == 0;
    json_array_append_new(list,
                          json_pack("{s:s,s:s,s:s,s:s}", "name", rule->name, "text", text_or(rule->text),
                                    "fix", text_or(rule->fix), "example", text_or(rule->example)));
    cli_print(run, "%s%s\n  rule     %s\n  fix      %s\n", first ? "" : "\n", rule->name, text_or(rule->text),
              text_or(rule->fix));
    for (const char *line = rule->example; line && *line;) {
        size_t length = strcspn(line, "\n");
        cli_print(run, "  %s %.*s\n", line == rule->example ? "example " : "        ", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* The machine's rules and those of ranks, which are errors, then the compiler's, which are warnings. */
static fr_status run_rules(cli_run *run, fr_error *error)
{
    (void)error;
    int machine, language, collective;
    const fr_neuron_rule *rules = fr_neuron_rules(&machine);
    const fr_neuron_rule *ranks = fr_neuron_collective_rules(&collective);
    const fr_neuron_rule *python = fr_neuron_language_rules(&language);
    json_t *list = json_array();
    cli_put(run, "rules", list);
    for (int i = 0; i < machine; i++)
        print_rule(run, list, &rules[i]);
    for (int i = 0; i < collective; i++)
        print_rule(run, list, &ranks[i]);
    for (int i = 0; i < language; i++)
        print_rule(run, list, &python[i]);
    return FR_OK;
}

const cli_command cmd_nki_isa = {
    .name = "nki isa",
    .arguments = "[INSTRUCTION]",
    .least = 0,
    .most = 1,
    .summary = "instructions of the simulated core: operands, semantics, limits, cost and its source",
    .options = isa_options,
    .option_count = COUNT(isa_options),
    .examples = "  frontier nki isa\n  frontier nki isa tensor_copy\n  frontier nki isa --markdown",
    .run = run_isa,
    .schema = "nki-isa",
};

const cli_command cmd_nki_rules = {
    .name = "nki rules",
    .least = 0,
    .most = 0,
    .summary = "every rule a kernel can break: what it says, the usual fix, an example that breaks it",
    .examples = "  frontier nki rules\n  frontier nki rules --json",
    .run = run_rules,
    .schema = "nki-rules",
};
