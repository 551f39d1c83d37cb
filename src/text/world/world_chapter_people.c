/* world_chapter_people.c: portraits of people, and questions with answers.
 *
 * Portraits say in the present tense what stories say in the past. The questions are phrased as the task
 * items are, so that what a model learns from the corpus can be asked for.
 */
#include "text/world/world_chapters.h"

static const world_template templates[] = {
    {"portrait", 5,
     "{P:person+full} is {P.trade+a} from {P.home}. {work_fact} {self_fact} {taste_fact} {self_fact} "
     "{portrait_end}"},
    {"portrait", 4,
     "{P:person+full} lives in {P.home}. {work_fact} {self_fact} {taste_fact} {self_fact} {portrait_end}"},
    {"portrait", 3, "Who is {P:person+full}? {work_fact} {self_fact} {taste_fact} {portrait_end}"},
    {"portrait", 2,
     "About {P:person+full}\n\n{work_fact} {taste_fact} {self_fact} {taste_fact} "
     "{self_fact}\n\n{portrait_end}"},

    {"subject", 3, "{P+he}"},
    {"subject", 2, "{P}"},

    {"work_fact", 9, "{^subject} is {P.trade+a} and {P.trade.act+s} in the {P.trade.shop}."},
    {"work_fact", 9, "{^P+his} home is in {P.home}, {spot} the {building}."},
    {"work_fact", 9, "{^P+his} best friend is {P.friend}, {trait+a} {P.friend.trade}."},
    {"work_fact", 5, "{^P+his} {P.trade.tool} is {look}, but {P+his} {P.trade.ware+s} are famous {going}."},
    {"work_fact", 4, "{^P+he} wakes at {hour}, eats {dish+a}, and {handle+s} {np}."},
    {"work_fact", 4, "{^subject} was born in {year} and came to {P.home} {when}."},
    {"work_fact", 2, "In {P.home} they make {P.home.ware}, but {subject} prefers {crop}."},
    {"taste_fact", 8, "{^subject} has {P.pet.species+a} called {P.pet}, {degree} {trait}."},
    {"taste_fact", 9, "{^P+his} favourite food is {P.food}, best with {drink} and {spice}."},
    {"taste_fact", 7, "{^P+his} favourite colour is {P.colour}, and so is {P+his} {garment}."},
    {"taste_fact", 9, "On {weekday}s {subject} goes {P.hobby} {where}."},
    {"taste_fact", 7,
     "{P.pet} is {P.pet.coat+a} {P.pet.species} and {P.pet.species.sound+s} when {someone} comes {going}."},
    {"taste_fact", 4,
     "The {P.pet.species} sleeps in the {P.pet.species.shelter} and likes {P.pet.species.meal+s}."},
    {"taste_fact", 4, "For {meal} {subject} wants {P.food+a} and nothing else."},
    {"self_fact", 6, "{^subject} is {degree} {trait} and {often} {feeling}."},
    {"self_fact", 6, "{^P+his} {kin}, {stranger}, is {degree} {trait}."},
    {"self_fact", 5, "{^subject} owns {anp} and {anp}."},
    {"self_fact", 4, "{^P+he} {often} {walk+s} {going} to {handle} {thing+s}."},
    {"self_fact", 3, "{^P+he} plays the {instrument} {manner} and sings of {virtue}."},
    {"self_fact", 3, "{^P+he} collects {look} {thing+s} and {colour} {thing+s}."},
    {"self_fact", 2, "{^P+he} is afraid of {insect+s} and {figure+s}."},

    {"portrait_end", 5, "People say that {subject} is the most {trait} {P.trade} in {P.home}."},
    {"portrait_end", 4, "Ask {P.friend} about {P+him}, and you will hear {idea+a}."},
    {"portrait_end", 3, "{^P+his} rule is: {saying}."},
    {"portrait_end", 3, "One day {subject} hopes to {handle} {np}."},
    {"portrait_end", 2, "That is all anyone knows about {P}."},

    {"card", 4,
     "Name: {P:person+full}\nTrade: {P.trade}\nHome: {P.home}\nAnimal: {P.pet}, {P.pet.coat+a} "
     "{P.pet.species}\nLikes: {P.food+s}, {P.hobby} and {P.colour} {garment+s}\nFriend: {P.friend}\nSeen "
     "{where} by {stranger}: {remark}\n"},
    {"card", 3,
     "{P:person+full} ({P.home})\n- {P.hobby}, {often} {where}\n- {P.food+a} for {meal}\n- {P.colour} "
     "{thing+s}\n- {P.pet.coat+a} {P.pet.species} called {P.pet}\n- {number} {thing+s}, {number} "
     "{thing+s}\n{^remark}\n"},
    {"remark", 4, "{degree} {trait}, {often} {feeling}"},
    {"remark", 3, "carries {anp}"},
    {"remark", 3, "{saying}"},
    {"remark", 2, "wants to {handle} {np}"},

    {"trade_page", 4, "{^T:trade+a} works in the {T.shop}. {craft} {craft} {craft_end}"},
    {"trade_page", 3, "What does {T:trade+a} do? {craft} {craft} {craft} {craft_end}"},
    {"craft", 6, "{^T+a} needs {look+a} {T.tool} and {thing+a}."},
    {"craft", 6, "The {T+s} {T.act} from {hour} to {hour}."},
    {"craft", 5, "One {T.ware} costs {number} pence or {anp}."},
    {"craft", 5, "In the {T.shop} you find {T.ware+s}, {thing+s} and {feeling} {figure+s}."},
    {"craft", 4, "The {T.tool} must be {look} and {look}."},
    {"craft", 4, "{stranger} was a famous {T} of {place}."},
    {"craft", 3, "There are {number} {T+s} in {place}, {often} {trait}."},
    {"craft", 3, "It takes {small+full} years to learn, and {virtue}."},
    {"craft_end", 4, "{P:person+full} of {P.home} is {P.trade+a}, which is another story."},
    {"craft_end", 3, "A good {T} {often} says: {saying}."},
    {"craft_end", 2, "Without {T+s} there would be no {T.ware+s}."},

    {"quiz", 5, "{question}{question}{question}"},
    {"quiz", 4, "{question}{question}{question}{question}"},
    {"quiz", 3, "{question}{question}"},
    {"quiz", 3, "{passage}\n{passage_question}"},
    {"quiz", 2, "{question}{question}{question}{question}{question}"},

    {"question", 8, "Question: Where does {P:person+full} live?\nAnswer: {P.home}\n"},
    {"question", 8, "Question: What is the trade of {P:person+full}?\nAnswer: {P.trade}\n"},
    {"question", 8, "Question: What is the favourite food of {P:person+full}?\nAnswer: {P.food}\n"},
    {"question", 6, "Question: What is the favourite colour of {P:person+full}?\nAnswer: {P.colour}\n"},
    {"question", 6, "Question: What animal does {P:person+full} have?\nAnswer: {P.pet.species}\n"},
    {"question", 7, "Question: Who is the best friend of {P:person+full}?\nAnswer: {P.friend}\n"},
    {"question", 6, "Question: What does {P:person+full} do for pleasure?\nAnswer: {P.hobby}\n"},
    {"question", 5, "Question: Which river flows through {L:place}?\nAnswer: {L.river}\n"},
    {"question", 4, "Question: What is made in {L:place}?\nAnswer: {L.ware}\n"},
    {"question", 4, "Question: Where does {T:trade+a} work?\nAnswer: {T.shop}\n"},
    {"question", 4, "Question: What tool does {T:trade+a} use?\nAnswer: {T.tool}\n"},
    {"question", 4, "Question: What noise does {A:animal+a} make?\nAnswer: {A.sound}\n"},
    {"question", 3,
     "Question: What is the name of the {X=person}{X.pet.species} of {X+full}?\nAnswer: {X.pet}\n"},
    {"question", 4,
     "Question: What colour is {X=person}{X.pet}, the {X.pet.species} of {X+full}?\nAnswer: {X.pet.coat}\n"},
    {"question", 5, "Question: Who owns the {O:treasure}?\nAnswer: {O.owner+full}\n"},
    {"question", 5, "Question: What is the {O:treasure} made of?\nAnswer: {O.material}\n"},
    {"question", 4, "Question: Where does {A:animal+a} live?\nAnswer: {A.shelter}\n"},
    {"question", 4, "Question: What does {A:animal+a} like to eat?\nAnswer: {A.meal+s}\n"},

    {"reading", 2, "{exercise}\n{exercise}"},
    {"reading", 3, "{exercise}\n{exercise}\n{exercise}"},
    {"reading", 2, "{exercise}\n{exercise}\n{exercise}\n{exercise}"},
    {"exercise", 3, "{noise}\nQuestion: What animal was it?\nAnswer: {A}\n"},
    {"exercise", 3, "{work}\nQuestion: What is the trade of {G}?\nAnswer: {T}\n"},
    {"exercise", 2, "{deeds}\nQuestion: How was the weather?\nAnswer: {S}\n"},
    {"exercise", 2, "{passage}\n{passage_question}"},
    {"noise", 1, "{A=animal}{G:given} {handle+ed} {X:thing+a} {where}. Something {A.sound+ed} all {daypart}. {event_of_g}"},
    {"noise", 1, "{A=animal}It was {degree} {weather}. Something {A.sound+ed} {where}. {G:given} {handle+ed} {X:thing+a}."},
    {"work", 1, "{T=trade}{G:given} took {look+a} {T.tool} and {walk+ed} to the {T.shop}. {event_of_g}"},
    {"work", 1, "{T=trade}It was {degree} {weather}. {G:given} sold {H:given} {T.ware+a} and {thing+a} {where}."},
    {"deeds", 1, "{G:given} {handle+ed} {X:thing+a} {where}. It was {degree} {S:weather}. {H:given} {handle+ed} {Y:thing+a}."},
    {"deeds", 1, "It was {degree} {S:weather}. {G:given} {handle+ed} {X:thing+a}. {H:given} {handle+ed} {Y:thing+a} {where}."},

    {"passage", 4,
     "{G:given} {handle+ed} {X:thing+a} {where}. {H:given} {handle+ed} {Y:thing+a}. {event_of_g}"},
    {"passage", 3,
     "{G:given} bought {N:number} {X:fruit+s}, and {H:given} bought {M:number} {Y:vegetable+s}. "
     "{event_of_g}"},

    {"event_of_g", 3, "It was {degree} {weather}."},
    {"event_of_g", 2, "They {walk+ed} {going}."},
    {"event_of_g", 2, "Then {stranger} came {going}."},
    {"event_of_g", 2, "{^someone} {say+ed}, \"{speech}.\""},

    {"passage_question", 1, "Question: Who had the {X}?\nAnswer: {G}\n"},
    {"passage_question", 1, "Question: Who had the {Y}?\nAnswer: {H}\n"},
    {"passage_question", 1, "Question: What did {G} have?\nAnswer: {X}\n"},
    {"passage_question", 1, "Question: What did {H} have?\nAnswer: {Y}\n"},
};
WORLD_CHAPTER(world_chapter_people)
