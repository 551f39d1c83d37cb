/* world_chapter_places.c: places, animals and plants.
 *
 * Pages of a small encyclopaedia. L is the place, A the animal. Plants have invented names and no lasting
 * facts.
 */
#include "text/world/world_chapters.h"

static const world_template templates[] = {
    {"place_page", 5,
     "{L:place} is {L.kind+a} on the {L.river}. {place_known} {place_fact} {place_fact} {place_end}"},
    {"place_page", 3,
     "A guide to {L:place}\n\n{place_known} {place_known} {place_fact} {place_fact} {place_end}"},
    {"place_page", 2,
     "Travellers who come {going} will see {L:place}. {place_fact} {place_fact} {place_fact} {place_end}"},

    {"place_known", 6, "The river {L.river} flows through {L} {manner}."},
    {"place_known", 7, "{L} is known for its {L.ware} and its {look} {building}."},
    {"place_known", 5, "The {L.kind} has {number} houses, {small+full} inns and one {look} {building}."},
    {"place_fact", 5, "{^spot} the {building} stands {anp} of {stone}."},
    {"place_fact", 5, "To the {side} lies a {weather} {land} with {tree+s} and {flower+s}."},
    {"place_fact", 4, "The {building} was built in {year} by {stranger}."},
    {"place_fact", 4, "In {month} the {figure+s} of {L} eat {dish+s} and drink {drink}."},
    {"place_fact", 4, "From {L} it is {number} miles to {place}."},
    {"place_fact", 3, "Every {weekday} there is a market with {crop}, {crop} and {thing+s}."},
    {"place_fact", 3, "The people are {trait} but {often} {feeling}."},
    {"place_fact", 3, "In {season} it is {degree} {weather}."},
    {"place_fact", 3, "{stranger}, the mayor, is {degree} {trait}."},
    {"place_fact", 2, "You can hear {instrument+s} {where}."},

    {"place_end", 4, "Visit {L} {when}, and bring {anp}."},
    {"place_end", 3, "The {L.kind} will not forget you."},
    {"place_end", 2, "Their saying is: {saying}."},
    {"place_end", 2, "Boats leave on the {L.river} at {hour}."},

    {"animal_page", 5,
     "The {A:animal} lives in the {A.shelter}. {beast_fact} {beast_fact} {beast_fact} {beast_end}"},
    {"animal_page", 3,
     "What is {A:animal+a}? {beast_fact} {beast_fact} {beast_fact} {beast_fact} {beast_end}"},
    {"animal_page", 3,
     "{P=person}{P.pet} is the {P.pet.coat} {P.pet.species} of {P+full}. {^P.pet.species+a} "
     "{P.pet.species.sound+s} and eats {P.pet.species.meal+s}. {pet_tale} {pet_tale} {pet_tale}"},

    {"beast_fact", 6, "{^A+a} {A.sound+s} when it is {feeling}."},
    {"beast_fact", 7, "It eats {A.meal+s}, {crop} and {often} {dish+a}."},
    {"beast_fact", 5, "It {beast_act+s} {where} and {beast_act+s} {where}."},
    {"beast_fact", 7, "Its home is the {A.shelter}, {spot} the {furniture}."},
    {"beast_fact", 4, "Most {A+s} are {colour} or {colour}."},
    {"beast_fact", 4, "{^A+s} are {degree} {trait}, {often} {trait}."},
    {"beast_fact", 3, "{^number+full} {A+s} were seen {where} {when}."},
    {"beast_fact", 3, "{^someone} once sold {A+a} for {anp}."},
    {"beast_fact", 3, "Do not let it near the {garment+s} and the {dish+s}."},
    {"beast_fact", 2, "{stranger} of {place} keeps {number} of them."},

    {"beast_end", 3, "In {weather} weather it {beast_act+s}."},
    {"beast_end", 3, "So be {trait} to every {A}."},
    {"beast_end", 2, "That is why the {figure} fears the {A}."},
    {"beast_end", 1, "No {A} ever forgets {idea+a}."},

    {"pet_tale", 5, "{^when}, {P.pet} {beast_act+ed} {where}."},
    {"pet_tale", 4, "{P.pet} is {degree} {trait}."},
    {"pet_tale", 4, "Once {P.pet} {walk+ed} {going} and found {anp}."},
    {"pet_tale", 3, "{P} gave {P.pet} {anp}."},
    {"pet_tale", 3, "{P.pet} does not like {someone} {where}."},
    {"pet_tale", 2, "{P.pet} {often} sleeps in the {P.pet.species.shelter}."},

    {"herbal", 5, "{^herb}. {herb_fact} {herb_fact} {herb_fact} {herb_end}"},
    {"herbal", 3, "{^herb} or {herb}. {herb_fact} {herb_fact} {herb_end}"},

    {"herb_fact", 5, "It grows {where}, {spot} {tree+s}."},
    {"herb_fact", 5, "The leaves are {look} and {colour}, the flowers {colour}."},
    {"herb_fact", 4, "It tastes {taste} and smells of {spice}."},
    {"herb_fact", 4, "Picked at {hour} it helps against {trait+ness}."},
    {"herb_fact", 4, "With {drink} and {spice} it makes {figure+s} {feeling}."},
    {"herb_fact", 3, "{stranger} found it in {year} {where}."},
    {"herb_fact", 3, "Do not confuse it with {herb}, which is {colour}."},
    {"herb_fact", 2, "{^A:animal+s} eat it in {month}."},

    {"herb_end", 3, "Dry it in {month} and keep it in {thing+a}."},
    {"herb_end", 3, "Use {amount} it, never more."},
    {"herb_end", 2, "The {figure+s} of {place} call it {herb}."},
    {"herb_end", 1, "It is {degree} rare."},
};
WORLD_CHAPTER(world_chapter_places)
