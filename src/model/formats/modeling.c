/* The model file that exported folders carry. The Makefile turns modeling_frontier.py beside this file into C strings,
 * so that `frontier` needs no file of its own at run time and the text stays a Python file for editors.
 */
#include "model/formats/modeling.h"

#include <stddef.h>

const char *const modeling_frontier_lines[] = {
#include "model/formats/modeling_frontier.inc"
    NULL,
};
