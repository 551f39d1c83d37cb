/* world_lexicon.c: the words of the world.
 *
 * A list is a class of words that can stand in the same places. Spellings are explained in world_words.c.
 * Which words of a list are frequent is decided by the world's seed; how unequal they are, by the list's
 * flatness: rank r has a weight proportional to 1 / (r + flatness), Zipf's law with a blunted head. Lists
 * whose words can follow one another (looks, colours, things) share no word, which keeps the grammar
 * unambiguous.
 */
#include "text/world.h"

const world_list world_lexicon[] = {
    {"trait", SHAPE_ADJECTIVE, 8,
     "kind brave/bravery gentle patient/patience cheerful quiet careful honest/honesty clever stubborn "
     "proud/pride shy bold humble/humility generous/generosity thoughtful curious/curiosity restless "
     "polite faithful modest/modesty earnest graceful hopeful nimble prudent/prudence rude selfish solemn "
     "stern tender tireless trustful truthful vain wise/wisdom witty fearless forgetful grateful hasty "
     "helpful lively loyal/loyalty merciful playful rash reckless sensible serious sincere/sincerity "
     "skilful/skill steady sturdy tactful calm candid eager fickle frank frugal/frugality grave idle meek "
     "moody neat peaceful ruthless shrewd sociable/sociability spiteful watchful wistful zealous/zeal "
     "blunt brisk cunning greedy jealous/jealousy keen mild noble/nobility sly"},
    {"feeling", SHAPE_ADJECTIVE, 5,
     "happy sad tired angry glad weary lonely sleepy hungry thirsty worried bashful drowsy dizzy gloomy "
     "puzzled nervous joyful fretful giddy sorrowful thankful homesick breathless delighted ashamed "
     "amazed anxious bored relieved annoyed baffled content startled"},
    {"look", SHAPE_ADJECTIVE, 8,
     "old small large heavy broken new round narrow long short thin wide plain pretty dusty rusty shiny "
     "smooth rough soft hard cracked crooked hollow empty painted polished carved battered dented faded "
     "tattered torn patched mended delicate sharp dull flat curved striped spotted speckled tiny huge "
     "slender bulky clumsy dainty fragile handsome humid lopsided mossy muddy odd oval ornate precious "
     "quaint ragged scratched sooty splendid square stained tall twisted ugly useful worn woven wrinkled "
     "simple borrowed stolen lost foreign ancient costly cheap sticky damp"},
    {"colour", SHAPE_ADJECTIVE, 4,
     "red blue green yellow white black brown grey purple pink scarlet crimson golden silvery violet "
     "amber turquoise olive cream ivory"},
    {"weather", SHAPE_ADJECTIVE, 4,
     "cold warm windy rainy foggy bright stormy frosty misty cloudy snowy sunny dark chilly mild_and_grey "
     "showery sultry blustery wet dry hazy breezy clear icy"},
    {"taste", SHAPE_ADJECTIVE, 4,
     "sweet sour salty bitter fresh stale spicy crisp juicy mellow tart creamy smoky buttery peppery "
     "burnt ripe mouldy bland rich"},
    {"sort", SHAPE_ADJECTIVE, 5,
     "strange happy_little famous secret simple_old curious_old forgotten merry mournful noisy grand "
     "common peculiar marvellous dreadful ordinary remarkable lovely terrible foolish magnificent "
     "doubtful rare"},

    {"thing", SHAPE_NOUN, 10,
     "lamp kettle basket candle mirror blanket bucket ladder clock chair bottle hammer needle ribbon "
     "purse spoon broom barrel bell book box brush button cage carpet chest comb cork crate cup curtain "
     "cushion drum fan feather flag fork glove hat hinge hook horn jar jug key kite knife/knives knot "
     "lantern latch lid letter lock map mask mat medal mug nail net oar paddle pan parcel pen pencil "
     "picture pillow pipe pitcher plate pocket pole pot pouch quilt rake ring rod rope sack saddle "
     "scarf/scarves shell shelf/shelves shoe sickle sieve spade spindle spool stool string table thimble "
     "thread tray trunk tub umbrella urn vase violin wallet wheel whip whistle ball bead blade block bolt "
     "bow bowl bracelet brooch buckle cane card cart chain charm chisel coin collar compass cord crown "
     "cradle crutch dagger desk dish doll easel funnel globe goblet handle harness inkwell ink_pot keg "
     "lens locket loom mallet marble needle_case notebook ornament paintbrush pendant pin poker puppet "
     "razor sail scroll shawl sledge sponge statue stamp teapot tile torch toy tripod trophy trumpet "
     "tweezer_box vest_pin wagon wand watch whetstone wreath yoke"},
    {"fruit", SHAPE_NOUN, 5,
     "apple pear plum cherry peach apricot fig grape lemon lime melon orange quince raspberry strawberry "
     "blackberry blueberry gooseberry currant date elderberry mulberry damson"},
    {"vegetable", SHAPE_NOUN, 5,
     "carrot turnip onion cabbage potato/potatoes leek radish/radishes parsnip beetroot bean pea pumpkin "
     "marrow cucumber mushroom sprout lettuce celery_stick pepper shallot"},
    {"dish", SHAPE_NOUN, 6,
     "soup stew pie pudding omelette pancake dumpling sandwich porridge salad tart_of_pears casserole "
     "broth biscuit muffin bun scone waffle sausage roast fritter pasty cheesecake custard jelly trifle "
     "crumble chowder flan hotpot curry gingerbread"},
    {"drink", SHAPE_NOUN, 3,
     "tea milk cider coffee lemonade ale water cocoa ginger_beer buttermilk mead cordial"},
    {"spice", SHAPE_NOUN, 4,
     "salt pepper_corn cinnamon ginger nutmeg clove mustard mint thyme sage parsley rosemary basil fennel "
     "saffron dill honey vinegar sugar garlic"},
    {"garment", SHAPE_NOUN, 4,
     "coat cloak apron jacket shirt skirt dress waistcoat bonnet cap gown sweater jerkin tunic robe "
     "petticoat smock cardigan overcoat nightgown"},
    {"furniture", SHAPE_NOUN, 4,
     "cupboard dresser wardrobe bench sofa armchair bookcase bedstead sideboard footstool writing_desk "
     "cabinet larder window_seat mantelpiece"},
    {"room", SHAPE_NOUN, 3,
     "kitchen attic cellar pantry parlour bedroom hall study nursery scullery porch library workshop loft "
     "drawing_room"},
    {"building", SHAPE_NOUN, 5,
     "market church school inn mill barn tower bridge station harbour library castle chapel stable "
     "hospital theatre museum post_office town_hall lighthouse granary bath_house courthouse windmill "
     "warehouse tollhouse monastery guildhall boathouse observatory"},
    {"land", SHAPE_NOUN, 5,
     "hill valley forest meadow marsh lake river field island cave cliff moor beach pond wood orchard "
     "garden stream road path quarry heath ravine waterfall ridge plain thicket dune bog glade "
     "crossroads/crossroads hedge vineyard"},
    {"tree", SHAPE_NOUN, 4,
     "oak elm ash birch beech willow pine maple rowan yew alder cedar chestnut hazel larch linden poplar "
     "sycamore hawthorn juniper holly walnut"},
    {"flower", SHAPE_NOUN, 4,
     "rose daisy lily tulip violet poppy primrose bluebell foxglove iris lavender marigold snowdrop "
     "daffodil buttercup cowslip crocus dahlia heather honeysuckle lupin orchid pansy peony petunia "
     "sunflower thistle"},
    {"stone", SHAPE_NOUN, 4,
     "silver gold copper iron wood marble glass bronze bone clay pewter tin leather granite brass jade "
     "slate crystal pearl ebony velvet porcelain"},
    {"vehicle", SHAPE_NOUN, 3,
     "carriage wagon_train boat ferry canoe bicycle sleigh coach barge raft tram steamer rowing_boat "
     "handcart"},
    {"instrument", SHAPE_NOUN, 3,
     "fiddle flute harp accordion mandolin bagpipe piano clarinet tambourine organ banjo lute cello "
     "zither"},
    {"group", SHAPE_NOUN, 4,
     "choir club council crew band guild school_class jury committee brigade society troupe congregation "
     "orchestra"},
    {"idea", SHAPE_NOUN, 8,
     "secret promise plan question riddle story dream wish mistake rumour journey quarrel bargain song "
     "dance lesson game race contest feast holiday wedding visit surprise adventure discovery invention "
     "puzzle prayer poem proverb custom memory warning message theory excuse debt duty favour fashion "
     "habit insult legend melody miracle mystery oath opinion prize problem prophecy quest recipe reward "
     "rule sermon speech superstition task trick voyage vow"},
    {"virtue", SHAPE_NOUN, 5,
     "luck patience courage hope wisdom love trust laughter silence time courtesy friendship freedom "
     "honour justice mercy peace truth beauty charity comfort curiosity music faith fortune harmony "
     "industry innocence knowledge liberty homesickness moderation pride prudence reason solitude work"},
    {"relative", SHAPE_NOUN, 4,
     "mother father sister brother aunt uncle cousin grandmother grandfather nephew niece neighbour "
     "godmother godfather daughter son stepbrother great-aunt"},
    {"figure", SHAPE_NOUN, 6,
     "traveller stranger beggar soldier sailor widow child/children pedlar pilgrim thief/thieves king "
     "queen judge merchant guest orphan hermit servant fool giant witch wizard ghost princess prince duke "
     "duchess knight acrobat ambassador bandit bishop captain clown explorer hunter juggler messenger "
     "monk nun pirate poet rider scholar smuggler spy tutor vagabond wanderer"},
    {"insect", SHAPE_NOUN, 3,
     "bee butterfly beetle ant moth cricket dragonfly wasp ladybird grasshopper spider snail worm "
     "caterpillar"},
    {"kin", SHAPE_NOUN, 3,
     "cousin neighbour teacher landlord lodger apprentice partner rival customer godchild/godchildren "
     "helper pupil assistant tenant"},
    {"hobby", SHAPE_PLAIN, 4,
     "fishing painting knitting dancing singing gardening reading skating juggling rowing sewing climbing "
     "swimming carving bird-watching star-gazing letter-writing kite-flying bee-keeping stamp-collecting "
     "story-telling wrestling sledging"},

    {"walk", SHAPE_VERB, 4,
     "walk run/ran/running hurry march ride/rode stroll wander travel/travelled/travelling climb crawl "
     "creep/crept dash drift gallop hike hobble limp race_off row rush sail skip/skipped/skipping sneak "
     "stagger stride/strode trot/trotted/trotting trudge tiptoe/tiptoed/tiptoeing scramble scurry stumble "
     "swim/swam/swimming plod/plodded/plodding"},
    {"handle", SHAPE_VERB, 8,
     "carry clean mend paint lift hide/hid drop/dropped/dropping find/found sell/sold buy/bought "
     "break/broke polish borrow lose/lost lend/lent admire examine unwrap/unwrapped/unwrapping "
     "wrap/wrapped/wrapping open close measure repair wash weigh kick throw/threw catch/caught bury "
     "collect decorate deliver draw/drew empty_out fetch fill fix fold gather grab/grabbed/grabbing guard "
     "hang_up/hung_up/hanging_up inspect keep/kept label/labelled/labelling mark move oil pack "
     "pick_up/picked_up/picking_up praise pull push put_away/put_away/putting_away recognise remember "
     "rescue return scrub/scrubbed/scrubbing sharpen shake/shook sketch smell steal/stole store study "
     "test touch trade treasure trim/trimmed/trimming wipe destroy discover dust forget/forgot/forgetting"},
    {"say", SHAPE_VERB, 3,
     "say/said whisper shout ask answer reply explain/explained laugh sigh call grumble murmur cry "
     "declare insist mutter announce warn joke boast complain admit/admitted/admitting add protest "
     "suggest"},
    {"cook", SHAPE_VERB, 3,
     "chop/chopped/chopping boil fry bake roast_well peel slice stir/stirred/stirring grate mash simmer "
     "soak season steam toast crush mince rinse strain sift"},
    {"idle", SHAPE_VERB, 4,
     "sleep/slept sing/sang dance_about wait rest smile weep/wept yawn hum/hummed/humming whistle_a_tune "
     "read_a_book/read_a_book/reading_a_book think/thought sneeze shiver cough snore nod/nodded/nodding "
     "pray tremble daydream fidget/fidgeted/fidgeting frown giggle listen "
     "sit_still/sat_still/sitting_still stretch wink"},
    {"beast_act", SHAPE_VERB, 4,
     "sleep/slept hide/hid dig/dug/digging eat/ate drink/drank play hunt wait_about jump chase_its_tail "
     "scratch sniff roll_over splash stretch climb_about shake_itself/shook_itself/shaking_itself stare "
     "blink growl gnaw nibble pounce prowl wriggle"},

    {"manner", SHAPE_PLAIN, 6,
     "slowly quickly loudly softly happily sadly suddenly carefully proudly silently gladly eagerly "
     "bravely nervously angrily kindly gently politely calmly clumsily boldly firmly freely greedily "
     "hopefully hastily idly lazily merrily neatly patiently secretly seriously shyly steadily sternly "
     "swiftly tenderly thoughtfully wearily wisely warmly coldly briskly cheerfully"},
    {"often", SHAPE_PLAIN, 2,
     "always often sometimes usually never rarely seldom nearly_always now_and_then"},
    {"weekday", SHAPE_PLAIN, 12, "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"},
    {"month", SHAPE_PLAIN, 20,
     "January February March April May June July August September October November December"},
    {"season", SHAPE_PLAIN, 8, "spring summer autumn winter"},
    {"daypart", SHAPE_PLAIN, 4, "morning afternoon evening night"},
    {"hour", SHAPE_PLAIN, 4, "dawn noon dusk midnight sunrise sunset daybreak nightfall"},
    {"meal", SHAPE_PLAIN, 4, "breakfast lunch dinner supper tea"},
    {"side", SHAPE_PLAIN, 8, "north south east west"},
    {"degree", SHAPE_PLAIN, 3,
     "very rather quite truly so unusually wonderfully terribly a_little hardly fairly too"},
    {"spot", SHAPE_PLAIN, 5, "under behind beside near inside above beyond below opposite against"},
    {"amount", SHAPE_PLAIN, 4,
     "a_spoon_of a_pinch_of a_cup_of two_cups_of half_a_pound_of a_handful_of a_little_bit_of plenty_of "
     "three_spoons_of a_whole_bowl_of"},
    {"kind", SHAPE_NOUN, 4,
     "village town port hamlet city fishing_village mining_town market_town fortress mountain_village"},
    {"product", SHAPE_NOUN, 6,
     "cheese wool honey_cakes cider_apples pottery ropes lace salt_fish clocks bells paper candles boats "
     "glass_beads carpets plum_jam walnuts timber silk saddles tulip_bulbs smoked_ham ribbons "
     "mustard_seed"},
    {"epithet", SHAPE_ADJECTIVE, 6,
     "Silver Golden Broken Singing Hidden Burning Crooked Silent Whispering Iron Crimson Sleeping Frozen "
     "Hollow Laughing Midnight Painted Weeping Winged Wandering Thirteenth Emerald Dancing Blind"},
    {"relic", SHAPE_NOUN, 6,
     "Lantern Crown Sword Mirror Key Bell Cup Ring Book Harp Mask Compass Drum Shield Goblet Chalice "
     "Whistle Needle Anchor Feather Map Cloak Lamp Clock"},
    {"herb_head", SHAPE_PLAIN, 12,
     "silver moon thorn bell star frost honey shadow dragon lark fern goose river fire witch snow copper "
     "wolf bitter cloud wind feather night sun toad velvet milk lady king stone owl dew raven mouse salt "
     "moth cuckoo hare lamb spider"},
    {"herb_tail", SHAPE_PLAIN, 8,
     "wort moss leaf root bane bloom weed grass berry thistle foot cap balm mint wood cress tongue rush "
     "flax nettle clover briar"},
    {"sur_head", SHAPE_PLAIN, 16,
     "Thorn Ash Hal Marsh Wind Black White Green Red Oak Elm Stone Mill Brook Fair Long Hart Wood West "
     "East North South Wil Ever Hazel Holl Gold Silver Fox Crow Lark Raven Swan Wolf Hawk Moss Fern Rush "
     "Reed Salt Sand Frost Winter Summer Storm Bright Sterling Pen Tre Kel Dun Bar Cal Mor Lang Ald Ather "
     "Bram Car Cran Dray Ed Far Gar Hather Hollin Ingle Kirk Lind Mat Nether Nor Over Pem Quill Rad Rook "
     "Sel Shel Tatter Under Var Wake Wex Yar"},
    {"sur_tail", SHAPE_PLAIN, 10,
     "wick ley ton ford worth field wood dale bury man more bridge son ridge by stone shaw croft gate "
     "lock hurst combe ham mere grove well borne thorpe bank cott den holm stead smith wright bourne"},
};
const int world_lexicon_count = sizeof world_lexicon / sizeof world_lexicon[0];

/* trade, where it is done, its tool, what it makes or deals in, what its people do all day */
const world_relation world_trade_table[] = {
    {{"baker", "bakery", "bread oven", "loaf/loaves", "knead dough"}},
    {{"blacksmith", "forge", "anvil", "horseshoe", "hammer away"}},
    {{"carpenter", "joinery", "saw", "wooden chair", "saw planks"}},
    {{"weaver", "weaving room", "hand loom", "bolt of cloth/bolts of cloth", "weave/wove"}},
    {{"potter", "pottery yard", "potter's wheel", "clay pot", "shape clay"}},
    {{"fisherman/fishermen", "fishing hut", "fishing net", "herring/herring",
      "cast nets/cast nets/casting nets"}},
    {{"shepherd", "sheepfold", "crook", "fleece", "count sheep"}},
    {{"miller", "flour mill", "millstone", "sack of flour/sacks of flour",
      "grind corn/ground corn/grinding corn"}},
    {{"tailor", "tailor's shop", "pair of scissors/pairs of scissors", "suit", "sew suits/sewed suits"}},
    {{"cobbler", "shoe shop", "awl", "pair of boots/pairs of boots", "mend soles"}},
    {{"doctor", "surgery", "stethoscope", "bottle of medicine/bottles of medicine", "visit patients"}},
    {{"teacher", "schoolroom", "blackboard", "lesson book", "teach sums/taught sums/teaching sums"}},
    {{"gardener", "greenhouse", "watering can", "rose bush/rose bushes", "pull weeds"}},
    {{"clockmaker", "clock shop", "magnifying glass/magnifying glasses", "pocket watch/pocket watches",
      "wind springs/wound springs/winding springs"}},
    {{"beekeeper", "apiary", "bee smoker", "jar of honey/jars of honey", "tend hives"}},
    {{"painter", "studio", "palette", "portrait", "mix colours"}},
    {{"librarian", "reading room", "card index/card indexes", "dictionary", "sort books"}},
    {{"innkeeper", "tavern", "bunch of keys/bunches of keys", "barrel of ale/barrels of ale",
      "pour drinks"}},
    {{"ferryman/ferrymen", "landing stage", "ferry pole", "crossing", "row passengers over"}},
    {{"glassblower", "glassworks", "blowpipe", "glass bowl", "blow glass/blew glass/blowing glass"}},
    {{"printer", "printing house", "printing press/printing presses", "newspaper",
      "set type/set type/setting type"}},
    {{"butcher", "butcher's shop", "cleaver", "leg of lamb/legs of lamb",
      "cut chops/cut chops/cutting chops"}},
    {{"astronomer", "star tower", "telescope", "star chart", "count stars"}},
    {{"candlemaker", "wax house", "wick cutter", "beeswax candle", "dip wicks/dipped wicks/dipping wicks"}},
};
const int world_trade_count = sizeof world_trade_table / sizeof world_trade_table[0];

/* animal, the noise it makes, where it lives, what it likes to eat */
const world_relation world_animal_table[] = {
    {{"dog", "bark", "kennel", "bone"}},
    {{"cat", "purr", "basket by the stove", "sardine"}},
    {{"horse", "neigh", "stall", "lump of sugar/lumps of sugar"}},
    {{"goat", "bleat", "goat shed", "bramble leaf/bramble leaves"}},
    {{"pig", "grunt", "sty", "acorn"}},
    {{"duck", "quack", "pond hut", "water snail"}},
    {{"hen", "cluck", "coop", "barley grain"}},
    {{"donkey", "bray", "stable yard", "thistle top"}},
    {{"owl", "hoot", "hollow tree", "mouse/mice"}},
    {{"parrot", "squawk", "gilded cage", "sunflower seed"}},
    {{"frog", "croak", "lily pond", "fly"}},
    {{"mouse/mice", "squeak", "hole in the wall", "cheese rind"}},
    {{"crow", "caw", "nest in the elm", "beetle grub"}},
    {{"goose/geese", "honk", "pen by the gate", "blade of grass/blades of grass"}},
    {{"pigeon", "coo", "dovecote", "dried pea"}},
    {{"rabbit", "thump", "hutch", "dandelion leaf/dandelion leaves"}},
    {{"hedgehog", "snuffle", "heap of leaves", "earthworm"}},
    {{"tortoise", "hiss", "flower bed", "strawberry leaf/strawberry leaves"}},
    {{"canary", "trill", "wire cage", "millet seed"}},
    {{"squirrel", "chatter", "drey", "hazelnut"}},
    {{"lizard", "rustle", "warm wall", "cricket leg"}},
    {{"raven", "rasp", "church tower", "crust"}},
    {{"calf/calves", "moo", "cow shed", "turnip top"}},
    {{"lamb", "baa/baaed", "fold", "clover head"}},
};
const int world_animal_count = sizeof world_animal_table / sizeof world_animal_table[0];
