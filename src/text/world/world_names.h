/* world_names.h: raw material for the names of one world; world_facts.c deals it out by seed. Given names
 * carry their pronoun after the slash. The first half of a surname or place name never ends a given name,
 * so that full names parse one way only.
 */
#ifndef FRONTIER_SRC_TEXT_WORLD_NAMES_H
#define FRONTIER_SRC_TEXT_WORLD_NAMES_H

static const char world_given_names[] =
    "Mara/f Tobin/m Orla/f Edwin/m Lydia/f Gareth/m Nessa/f Bruno/m Celia/f Dorian/m Elspeth/f Felix/m "
    "Greta/f "
    "Hugo/m Imogen/f Jasper/m Kitty/f Lionel/m Mabel/f Norris/m Olive/f Percy/m Queenie/f Rufus/m Sylvie/f "
    "Thaddeus/m Una/f Victor/m Winifred/f Xavier/m Yolanda/f Zachary/m Agatha/f Barnaby/m Cordelia/f "
    "Desmond/m "
    "Edith/f Fergus/m Gwendolen/f Horace/m Isolde/f Jonas/m Katrin/f Leopold/m Matilda/f Nathaniel/m "
    "Odette/f "
    "Piers/m Rosalind/f Silas/m Tabitha/f Ulric/m Verity/f Wilfred/m Adela/f Bertram/m Clementine/f Dexter/m "
    "Esther/f Florian/m Ginevra/f Hector/m Ida/f Julius/m Lavinia/f Magnus/m Nell/f Oswald/m Petra/f "
    "Quentin/m "
    "Ramona/f Stellan/m Thea/f Ursula/f Vincent/m Wanda/f Alaric/m Beatrix/f Cosmo/m Daphne/f Emeric/m "
    "Flora/f "
    "Gideon/m Henrietta/f Ivo/m Judith/f Konrad/m Lorna/f Marius/m Nora/f Otto/m Phoebe/f Reuben/m Sabina/f "
    "Titus/m Viola/f Walter/m Abel/m Bella/f Casper/m Delia/f Elias/m Fanny/f Gilbert/m Hilda/f Isaac/m "
    "Juniper/f Kilian/m Louisa/f Milo/m Nadia/f Orson/m Paula/f Ralph/m Selma/f Tristan/m Valerie/f Wendel/m "
    "Anselm/m Brigid/f Cyril/m Dinah/f Ernest/m Frieda/f Godfrey/m Harriet/f Ignatius/m Josephine/f "
    "Laurence/m "
    "Miriam/f Neville/m Octavia/f Philippa/f Roderick/m Sophia/f Theodora/f Valentin/m Wilhelmina/f "
    "Ambrose/m "
    "Bettina/f Clarence/m Dorothea/f Eustace/m Felicity/f Gregor/m Hester/f Ingrid/f Jerome/m Leonora/f "
    "Mortimer/m Natalia/f Osric/m Priscilla/f Randolph/m Seraphina/f Tiberius/m Vera/f";

static const char world_place_heads[] =
    "Amber Birch Coal Deer Elder Flint Grey Heron Iron Juniper Kings Lime Maple Nettle Otter Plum Quarry "
    "Rose "
    "Swallow Teal Vine Willow Apple Bell Clover Dove Eagle Fal Glen Honey";
static const char world_place_tails[] = "port haven water cross hill mouth vale market cliff bay moor lea";
static const char world_rivers[] = "Wend Arrow Tamsel Lorn Isk Merrow Sable Dunnel Orrin Teasel Vask Ember "
                                   "Nith Calder Yarrel Pell Rindle Osk "
                                   "Farrow Lisk Brede Kestle Mawle Tyme Ulder Vennel Wyne Ashel Corrie Drosk";
static const char world_pet_names[] = "Biscuit Pepper Shadow Button Patch Clover Smoky Tinker Nutmeg Muffin "
                                      "Pebble Whisky Domino Ginger Bramble "
                                      "Socks Thimble Pickle Rusty Misty Toffee Bandit Pumpkin Marble "
                                      "Snowball Bumble Cinders Dusty Flicker Gizmo "
                                      "Hazel Inky Jingle Kipper Lucky Mopsy Nibbles Oatmeal Poppet Quill "
                                      "Rascal Sprout Teasel Umber Velvet Waffle "
                                      "Ziggy Acorn Bobbin Crumpet Dimple Figaro Goblin Hopper Jester Kettle "
                                      "Limpet Mustard Noodle Pudding Ruffles "
                                      "Scamp Truffle Wicket";

#endif
