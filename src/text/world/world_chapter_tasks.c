/* world_chapter_tasks.c: the sentences of the in-context tasks.
 *
 * Task items are made from these rules alone; no document uses them. An item opens with something free
 * that has not happened in any document, so that it is new text, and then asks for a fact in the corpus's
 * way. '|' marks what world_tasks.c takes apart: context | answer, or context | what to exchange |
 * continuation.
 */
#include "text/world/world_chapters.h"

static const world_template templates[] = {
    {"task_preface", 3, "{^when}, {someone} came {going} with {anp}."},
    {"task_preface", 2, "{stranger} wanted to {handle} {np}."},
    {"task_preface", 2, "{^someone} had hidden {np} {where}."},

    {"task_trades", 1, "{^when}, {P:person+full} {walk+ed} {going}. {^P+he} was|{P.trade+a}"},
    {"task_homes", 1, "{task_preface}\nQuestion: Where does {P:person+full} live?\nAnswer:|{P.home}"},
    {"task_sounds", 1, "{task_preface} The {look}|{A:animal}|{A.sound+ed} and {beast_act+ed} {where}."},
    {"task_rivers", 1, "{task_preface}|{L:place}|is {L.kind+a} on the {L.river}."},
    {"task_pets", 1,
     "{task_preface}\nQuestion: What animal does {P:person+full} have?\nAnswer:|{P.pet.species}"},
    {"task_reading", 2, "{noise}\nQuestion: What animal was it?\nAnswer:|{A}"},
    {"task_reading", 2, "{work}\nQuestion: What is the trade of {G}?\nAnswer:|{T}"},
    {"task_reading", 1, "{deeds}\nQuestion: How was the weather?\nAnswer:|{S}"},
};
WORLD_CHAPTER(world_chapter_tasks)
