/* world_chapter_practical.c: recipes, instructions, lists, registers, tables, sums, code.
 *
 * Documents with a layout. Sums follow from the numbers chosen, so their results carry no information;
 * they are few, because they are the hardest thing here to learn.
 */
#include "text/world/world_chapters.h"

static const world_template templates[] = {
    {"recipe", 4,
     "Recipe for {D:dish+s} with {crop}\n\nYou need {amount} {spice}, {number} {crop} and "
     "{thing+a}.\n{step}{step}{step}{recipe_end}"},
    {"recipe", 3,
     "How to cook {D:dish}\n\nTake {amount} {spice} and {amount} "
     "{drink}.\n{step}{step}{step}{step}{recipe_end}"},

    {"step", 6, "{^cook} the {crop} {manner}.\n"},
    {"step", 5, "Add {amount} {spice} and {cook} for {number} minutes.\n"},
    {"step", 4, "{^cook} {amount} {spice} in {look+a} {thing}.\n"},
    {"step", 4, "When it smells {taste}, add {number} {crop}.\n"},
    {"step", 3, "{^cook} and {cook} until it is {colour} and {taste}.\n"},
    {"step", 2, "Pour in {amount} {drink} and wait until {hour}.\n"},
    {"step", 2, "Meanwhile {cook} the {crop} with {spice}.\n"},

    {"recipe_end", 4, "Serve the {D} {where} with {drink}.\n"},
    {"recipe_end", 3, "Enough for {small+full} {figure+s}, or one {figure}.\n"},
    {"recipe_end", 2, "Keep the {D} in {thing+a} for {small+full} days.\n"},

    {"howto", 4,
     "How to {handle} {anp}\n\n1. {^instruction}.\n2. {^instruction}.\n3. {^instruction}.\n{howto_end}"},
    {"howto", 3,
     "How to {handle} {anp}\n\n1. {^instruction}.\n2. {^instruction}.\n3. {^instruction}.\n4. "
     "{^instruction}.\n5. {^instruction}.\n{howto_end}"},

    {"instruction", 6, "{handle} {np} {manner}"},
    {"instruction", 5, "put {np} {where}"},
    {"instruction", 4, "wait {number} minutes and {idle}"},
    {"instruction", 4, "ask {someone} for {anp}"},
    {"instruction", 3, "tie {anp} to {anp}"},
    {"instruction", 3, "make sure that {np} is {look}"},
    {"instruction", 2, "{walk} {going} and {handle} {thing+a}"},
    {"instruction", 2, "never {handle} it in {month}"},

    {"howto_end", 3, "Now it is {look}.\n"},
    {"howto_end", 3, "If it is still {look}, ask {stranger}.\n"},
    {"howto_end", 2, "Be {trait}, and it will not fail.\n"},

    {"list", 4, "Shopping list\n{shop_item}{shop_item}{shop_item}{shop_item}{shop_item}{list_end}"},
    {"list", 3, "Things found {where}\n{thing_item}{thing_item}{thing_item}{thing_item}{list_end}"},
    {"list", 3, "To do on {weekday}\n{todo}{todo}{todo}{todo}{list_end}"},
    {"list", 2, "Guests at {meal}\n{guest}{guest}{guest}{guest}{guest}{list_end}"},
    {"list", 2, "Books by {stranger}\n{title}{title}{title}{title}{list_end}"},

    {"shop_item", 4, "- {number} {fruit+s}\n"},
    {"shop_item", 4, "- {number} {vegetable+s}\n"},
    {"shop_item", 3, "- {amount} {spice}\n"},
    {"shop_item", 3, "- {anp}\n"},
    {"shop_item", 2, "- {small+full} bottles of {drink}\n"},
    {"shop_item", 1, "- {colour+a} {garment}\n"},

    {"thing_item", 5, "- {anp}\n"},
    {"thing_item", 3, "- {number} {look} {thing+s}\n"},
    {"thing_item", 2, "- {number} {colour} {thing+s}\n"},
    {"thing_item", 1, "- {page} {insect+s}\n"},

    {"todo", 5, "- {handle} {np}\n"},
    {"todo", 4, "- write to {stranger}\n"},
    {"todo", 3, "- {walk} {going}\n"},
    {"todo", 3, "- {cook} the {crop}\n"},
    {"todo", 2, "- buy {amount} {spice}\n"},
    {"todo", 1, "- be {trait}\n"},

    {"guest", 5, "- {stranger}\n"},
    {"guest", 3, "- {stranger} and {stranger}\n"},
    {"guest", 2, "- the {trait} {figure}\n"},
    {"guest", 2, "- {P:person+full}\n"},

    {"title", 5, "- The {sort} {figure} of {place}, {year}\n"},
    {"title", 4, "- {^trait+ness} and {trait+ness}, {year}\n"},
    {"title", 3, "- How I {handle+ed} the {thing}, {year}\n"},
    {"title", 2, "- {^number+full} {sort} {idea+s}, {year}\n"},
    {"title", 2, "- The {figure} and the {figure}, {year}\n"},

    {"list_end", 3, "That is all.\n"},
    {"list_end", 2, "And {anp}, if possible.\n"},
    {"list_end", 2, "Total: {page}\n"},

    {"register", 4, "Guest book of the {building} in {place}\n{visit}{visit}{visit}{visit}"},
    {"register", 3,
     "Passengers of the {vehicle} to {place}, {day} {month} {year}\n{visit}{visit}{visit}{visit}{visit}"},
    {"register", 2, "Accounts of {stranger}\n{account}{account}{account}{account}{account}"},

    {"visit", 6, "{stranger}, {figure}, from {place}, with {anp}\n"},
    {"visit", 5, "{stranger}, page {page}: {degree} {feeling}\n"},
    {"visit", 4, "{stranger} and {relative}, room {number}\n"},
    {"visit", 2, "{P:person+full}, {P.trade}, from {P.home}\n"},

    {"account", 4, "{day} {month}: {anp}, {number} pence\n"},
    {"account", 3, "{day} {month}: {number} {thing+s}, {page} pence\n"},
    {"account", 2, "{day} {month}: paid by {stranger}, {page} pence\n"},

    {"table", 4, "| name | trade | home |\n|---|---|---|\n{row_t}{row_t}{row_t}{row_t}"},
    {"table", 3, "| name | animal | colour |\n|---|---|---|\n{row_p}{row_p}{row_p}{row_p}"},
    {"table", 3, "| place | river | goods |\n|---|---|---|\n{row_l}{row_l}{row_l}"},
    {"table", 3, "| item | number | price |\n|---|---|---|\n{row_i}{row_i}{row_i}{row_i}"},

    {"row_t", 1, "| {P:person+full} | {P.trade} | {P.home} |\n"},

    {"row_p", 1, "| {P:person+full} | {P.pet.species} | {P.colour} |\n"},

    {"row_l", 1, "| {L:place} | {L.river} | {L.ware} |\n"},

    {"row_i", 2, "| {thing+s} | {number} | {page} |\n"},
    {"row_i", 1, "| {fruit+s} | {number} | {number} |\n"},
    {"row_i", 1, "| {look} {thing+s} | {number} | {page} |\n"},

    {"sums", 3, "{sum}{sum}{sum}{sum}{sum}"},
    {"sums", 2, "{sum_story}\n{sum_story}\n{sum_story}\n"},

    {"sum", 5, "{A:small} + {B:small} = {=A+B}\n"},
    {"sum", 3, "{A=small}{B=small}{=A+B} - {B} = {A}\n"},
    {"sum", 3, "{A:small} x {B:small} = {=A*B}\n"},
    {"sum", 2, "{A:small+full} and {B:small+full} make {=A+B}\n"},

    {"sum_story", 4,
     "{given} has {A:small} {thing+s} and buys {B:small} more at the {building}. That makes {=A+B}."},
    {"sum_story", 3,
     "{A:small} {figure+s} and {B:small} {figure+s} {walk} {going}. Together they are {=A+B}."},
    {"sum_story", 3,
     "{^A:small+full} {fruit+s} lie {where}, and {B:small+full} {vegetable+s} {where}. There are {=A+B} "
     "in all."},

    {"code", 3,
     "let {F:fruit+s} = {A:small};\nlet {G:vegetable+s} = {B:small};\nlet total = {F+s} + "
     "{G+s};\nprint(total); // {=A+B}\n{code_end}"},
    {"code", 3,
     "def {handle}_{F:thing}({colour}):\n    {G:fruit} = \"{look} {thing}\"\n    for {insect} in "
     "range({number}):\n        {handle}({G}, \"{spot}\", {page})\n    return {G}\n{code_end}"},
    {"code", 2,
     "{F:thing} = new Thing(\"{stranger}\", {number}, \"{colour}\");\nif ({F}.age > {number}) "
     "print(\"{look} {thing}\");\n{code_end}"},

    {"code_end", 2, "// {handle} {np}\n"},
    {"code_end", 2, "// see page {page}\n"},
    {"code_end", 1, "// written by {stranger}\n"},
};
WORLD_CHAPTER(world_chapter_practical)
