/* world_chapter_letters.c: letters.
 *
 * Letters of residents go to their best friend and tell true things; letters of strangers tell anything.
 */
#include "text/world/world_chapters.h"

static const world_template templates[] = {
    {"letter", 6,
     "{place}, {day} {month} {year}\n\nDear {given},\n\n{letter_line} {letter_line} "
     "{letter_line}\n\n{signoff}\n{stranger}\n"},
    {"letter", 5,
     "{P=person}{P.home}, {day} {month} {year}\n\nDear {P.friend},\n\n{letter_line} {letter_fact} "
     "{letter_line} {letter_fact}\n\n{signoff}\n{P}\n"},
    {"letter", 3,
     "Dear {relative},\n\n{letter_line} {letter_line} {letter_line} {letter_line}\n\n{signoff}\n{given}\n"},
    {"letter", 2,
     "To the {group} of {place}\n\n{letter_line} {letter_line} {letter_line}\n\n{signoff}\n{stranger}, "
     "{figure}\n"},

    {"letter_line", 9, "Thank you for {np}, which I {handle+ed} {when}."},
    {"letter_line", 8, "The weather is {degree} {weather}, and I am {feeling}."},
    {"letter_line", 8, "{^when}, {someone} came {going} with {anp}."},
    {"letter_line", 7, "I have bought {anp} for {number} shillings."},
    {"letter_line", 7, "Do you remember {np} {where}?"},
    {"letter_line", 6, "Please {handle} {np} before {month}."},
    {"letter_line", 6, "Your {relative} {walk+ed} {going} and was {degree} {trait}."},
    {"letter_line", 5, "I send you {A:thing+a}, {B:thing+a} and {number} {crop}."},
    {"letter_line", 5, "{stranger} has {handle+ed} my {look} {thing}."},
    {"letter_line", 5, "We {idle+ed} {where} until {hour}."},
    {"letter_line", 4, "How is your {look} {thing}?"},
    {"letter_line", 4, "As my {relative} used to say, {saying}."},
    {"letter_line", 4, "The {crop} are {taste}, the {crop} are not."},
    {"letter_line", 3, "Next {season} we shall go {hobby} {where}."},
    {"letter_line", 3, "{stranger} is going to marry {stranger}."},
    {"letter_line", 3, "I hope that {virtue} and {virtue} are with you."},
    {"letter_line", 3, "There is a new {building} here, {degree} {look}."},
    {"letter_line", 2, "The {instrument} arrived {when}; it sounds {feeling}."},
    {"letter_line", 2, "Our {A:animal} {often} {A.sound+s} at {figure+s}."},
    {"letter_line", 1, "Forgive my {trait+ness}."},

    {"letter_fact", 5, "Here in the {P.trade.shop} I {P.trade.act} all day."},
    {"letter_fact", 5, "{P.pet} {P.pet.species.sound+s} {manner} and eats {P.pet.species.meal+s}."},
    {"letter_fact", 4, "My {P.pet.coat} {P.pet.species} {P.pet} sends you {look+a} {thing}."},
    {"letter_fact", 4, "Yesterday I ate {P.food+a} with {drink}."},
    {"letter_fact", 6, "I still go {P.hobby} on {weekday}s."},
    {"letter_fact", 4, "{P.home} is {degree} {weather}, and the {P.home.river} is full of {vehicle+s}."},
    {"letter_fact", 3, "I have painted the {room} {P.colour}, you know why."},
    {"letter_fact", 3, "The {P.trade.tool} is {look}, so there are no {P.trade.ware+s} this {season}."},
    {"letter_fact", 2, "The {P.home.ware} of {P.home} costs {number} pence now."},

    {"signoff", 5, "Yours truly,"},
    {"signoff", 4, "With love,"},
    {"signoff", 3, "Your {trait} friend,"},
    {"signoff", 3, "Yours, {degree} {feeling},"},
    {"signoff", 2, "With {virtue} and {virtue},"},
    {"signoff", 1, "In haste,"},
};
WORLD_CHAPTER(world_chapter_letters)
