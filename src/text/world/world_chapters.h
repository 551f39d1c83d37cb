/* world_chapters.h: each chapter file holds one table called `templates` and publishes it by this macro.
 * The order of chapters is in world_chapters.c; the first template of the first one is the root of the
 * grammar.
 */
#ifndef FRONTIER_SRC_TEXT_WORLD_CHAPTERS_H
#define FRONTIER_SRC_TEXT_WORLD_CHAPTERS_H
#include "text/world.h"

#define WORLD_CHAPTER(NAME) const world_chapter NAME = {templates, sizeof templates / sizeof templates[0]};

extern const world_chapter world_chapter_phrases, world_chapter_stories, world_chapter_people,
    world_chapter_letters, world_chapter_places, world_chapter_practical, world_chapter_tasks;

#endif
