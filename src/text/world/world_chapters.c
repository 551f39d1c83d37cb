/* world_chapters.c: the order of the grammar's chapters. */
#include "text/world/world_chapters.h"

const world_chapter *const world_chapters[] = {
    &world_chapter_phrases, &world_chapter_stories, &world_chapter_people,
    &world_chapter_letters, &world_chapter_places,  &world_chapter_practical,
    &world_chapter_tasks,
};
const int world_chapter_count = sizeof world_chapters / sizeof world_chapters[0];
