"""Word lists of the corpus generator. Everything here was written for this project."""


def _w(text: str) -> list[str]:
    """One entry per comma."""
    return [" ".join(x.split()) for x in text.replace("\n", " ").split(",") if x.strip()]


GIRLS = _w("""Lily, Anna, Mia, Rosa, Nora, Ella, Zoe, Ida, Ruth, Clara, Lucy, Emma, Alice, Grace, Maya, Tess, Hanna,
June, Ivy, Eva, Sara, Molly, Daisy, Nina, Lena, Pia, Kate, Amy, Jane, Rita, Vera, Wendy, Holly, Poppy, Olive""")
BOYS = _w("""Tom, Ben, Max, Sam, Leo, Jack, Finn, Noah, Otto, Hugo, Paul, Tim, Luke, Adam, Felix, Oscar, Theo, Emil,
Jonas, Peter, Henry, Will, Dan, Ned, Ravi, Omar, Karl, Anton, Simon, Toby, Jim, Arthur, Frank, Milo, Hal""")
PET_NAMES = _w("""Pip, Button, Rusty, Momo, Biscuit, Pepper, Fern, Nutmeg, Dusty, Pebble, Hazel, Clover, Bramble, Tilly,
Bruno, Coco, Smudge, Patch, Willow, Sunny, Misty, Socks, Maple, Waffle, Ziggy, Echo, Juniper, Moss, Tansy, Twig""")
SMALL = _w("""fox, rabbit, mouse, squirrel, hedgehog, kitten, puppy, duckling, frog, bear, owl, mole, badger, otter,
beaver, sparrow, robin, lamb, pony, goat, turtle, penguin, monkey, elephant, lion, tiger, deer, hen, pig, cat, dog,
duck, goose, crab, seal, raccoon, bat, snail, ant, bee, dragon, donkey, crow, swan, wolf, koala, panda, parrot,
beetle, butterfly, camel, chick, dolphin, eagle, falcon, ferret, gecko, giraffe, hamster, hare, hippo, jay, kangaroo, lizard,
lynx, magpie, moose, moth, newt, ostrich, parakeet, pelican, pigeon, rhino, salamander, sloth, spider, starling, stork, swallow,
toad, walrus, weasel, woodpecker, zebra, calf, foal, piglet, gosling, cub""")
WISE = _w("""owl, turtle, goat, bear, crow, badger, horse, elephant, swan, whale, stork, toad, donkey, cat, dog,
goose, heron, deer, raven, ox""")
KIN = _w("mother, father, grandmother, grandfather, aunt, uncle, big sister, big brother")
JOBS = _w("""baker, farmer, teacher, gardener, fisherman, carpenter, miller, doctor, shepherd, painter, tailor, sailor,
postman, librarian, cook, shoemaker, potter, weaver, beekeeper, train driver, clockmaker, nurse, blacksmith, captain,
mayor, piper, juggler, bus driver, barber, bricklayer, cobbler, diver, engineer, fireman, forester, glazier, goldsmith, hunter,
innkeeper, jeweller, knight, lighthouse keeper, locksmith, mason, merchant, musician, pilot, plumber, printer, saddler, singer, smith,
stable boy, tinker, toymaker, vet, waiter, watchman, woodcutter""")

SIZE = _w("little, small, tiny, young, big")
NATURE = _w("""kind, brave, curious, shy, clever, cheerful, gentle, quiet, playful, careful, proud, lazy, busy, honest,
patient, friendly, hungry, sleepy, silly, stubborn, lonely, polite, eager, dreamy, merry,
bold, bright, calm, cautious, funny, generous, grumpy, helpful, humble, jolly, lively, mischievous, modest, nervous, noisy,
peaceful, restless, serious, strong, thoughtful, timid, tender, wild, witty, faithful, fearless, fussy, good""")
OLD = _w("old, wise, gentle, kind, grey, slow, friendly, calm, patient, quiet, very old, cheerful")
COLOUR = _w("red, blue, green, yellow, white, black, brown, orange, pink, purple, golden, silver, grey")
SHINE = _w("shiny, old, new, soft, pretty, lovely, bright, beautiful, strange, special, wooden, round, tiny, striped")
HAPPY = _w("happy, glad, proud, cheerful, pleased, very happy, so happy, full of joy, delighted, grateful")
SAD = _w("sad, very sad, unhappy, worried, upset, lonely, disappointed, gloomy, close to tears")
AFRAID = _w("afraid, scared, frightened, terrified")
TIRED = _w("tired, sleepy, worn out, very tired, exhausted")

HOMES = _w("""in a small house by the river, in a cosy den under an oak tree, at the edge of the forest, on a green hill,
in a little village, near the sea, in a warm burrow, by a quiet pond, on a farm, beside a big lake,
in a valley between two mountains, in a hollow log, close to an old mill, in a garden full of flowers,
on a small island, at the end of a long road, in a tall tree, behind the old barn, under a stone bridge,
next to a field of wheat, in a yellow house with a red door, in a cottage with a blue roof, by the railway,
near a deep wood, in a busy town, beside the market square""")
PLACES = _w("""the forest, the river, the old mill, the meadow, the market, the lake, the hill, the beach, the garden, the barn,
the village, the bridge, the orchard, the park, the cave, the field, the pond, the harbour, the mountain, the library,
the castle, the windmill, the valley, the stream, the woods, the lighthouse, the school, the big oak tree, the town,
the bakery, the station, the church, the fountain, the playground, the mine, the quarry, the vineyard, the dunes, the island,
the marsh, the waterfall, the canal, the fair, the circus, the theatre, the museum, the farm, the old tower, the toy shop, the dam""")
WILD = _w("""the forest, the meadow, the hill, the river, the woods, the valley, the mountain, the lake, the beach, the marsh""")
SPOTS = _w("""under a bush, behind a big rock, beside the path, near the bridge, under an old tree, in the tall grass,
next to a stream, on a flat stone, at the bottom of the hill, between two roots, in a pile of leaves, on the sand,
behind the fence, under the bench, by the well, in a hollow tree, at the edge of the pond, near the gate,
beside a pond, on a tree stump, under the porch, near a hedge, in front of the door, on the roof, under the bridge, at the corner,
in a wheelbarrow, on the doorstep, in the hay, at the foot of a tree, by the fountain, between the reeds, on a branch""")
TREASURES = _w("""ball, kite, hat, scarf, bell, drum, toy boat, book, key, ring, lantern, basket, blanket, whistle, flute,
teddy bear, doll, mirror, coin, button, shell, map, umbrella, cup, box, feather, necklace, watch, pencil, bag, spoon,
wooden horse, marble, coat, boot, violin, pair of mittens, paper crown, music box, toy train, magnet, compass, jar,
candle, cushion, telescope, rocking horse, puzzle, paintbrush, spinning top, yo-yo, toy car, toy rabbit, bracelet,
bow tie, cap, blue stone, acorn, fishing rod, fan, glove, helmet, pocket knife, inkpot, jug, kettle, ladder, magnifying glass,
notebook, purse, ribbon, shield, spade, trumpet, vase, walking stick, wheel, pillow, clock, button box, stamp, crown, pinwheel""")
FOODS = _w("""apple pie, warm bread, honey cake, berry jam, soup, pancakes, cheese, biscuits, roasted nuts, plum cake,
porridge, carrot stew, fresh milk, cherry tart, buns, pears, strawberries, corn, potatoes, pumpkin soup, cookies, muffins,
hot chocolate, apple juice, noodles, rice, toast with butter, peach jam, tomato soup, lemon cake,
fried eggs, waffles, mushroom soup, cinnamon rolls, bread and jam, baked apples, melon, grapes, cherries, raspberries,
chestnuts, dumplings, pea soup, pasta, salad, ginger biscuits, vanilla pudding, chocolate cake, dried plums, sandwiches""")
INGREDIENTS = _w("""flour, sugar, butter, eggs, milk, honey, apples, nuts, berries, salt, carrots, potatoes, onions, plums,
cherries, raisins, oats, cream, lemons, pumpkins""")
FLOWERS = _w("rose, daisy, tulip, sunflower, lily, poppy, violet, bluebell, marigold, daffodil")
PLANTS = _w("sunflower, pumpkin, apple tree, bean plant, rose bush, carrot, strawberry plant, tomato plant, pear tree, tulip")
TREES = _w("oak tree, apple tree, pine tree, willow, birch, chestnut tree, cherry tree, tall fir, elm, maple")
SKILLS = _w("""swim, fly a kite, ride a bicycle, whistle, climb trees, bake bread, paint, sing, play the flute, skate, dance,
read, count to one hundred, tie a knot, row a boat, juggle, play the drum, knit, jump over the stream, write letters,
catch a ball, tell stories, do a handstand, play chess, cook soup,
sew, sail, ski, fish, draw horses, make candles, speak clearly, walk on stilts, stand on one leg, ride a pony, make paper birds,
carve wood, plant trees, milk a goat, throw a ball, tell the time, light a fire, find mushrooms, pick a lock, do magic tricks""")
GAMES = _w("""hide and seek, tag, a game with a ball, pirates, chess, jumping games, kings and queens, a guessing game, catch""")
CRAFTS = _w("""boat, treehouse, kite, bridge, snowman, sandcastle, raft, birdhouse, swing, wooden cart, scarecrow, tower,
little house, puppet theatre, bench, flying machine, robot, drum, garden gate, bookshelf, sledge, tent, fort,
cradle, lantern, wagon, hut, dolls' house, fountain, ladder, marble run, nest, obstacle course, pond, seesaw, shed, stage,
sundial, table, wall, water wheel, weather vane, xylophone""")
MATERIALS = _w("""wood, sticks, rope, old boxes, paper, stones, nails, string, cloth, leaves, mud, straw, bamboo, glue,
planks, buttons, wire, clay, paint, wool""")
WEATHER = _w("""sunny, windy, cold, warm, cloudy, rainy, bright, snowy, foggy, quiet, stormy, frosty, mild, hot, grey,
rough, damp, hazy, gloomy, breezy, fine, wet, dry, clear, dull, grey, lovely, fair""")
DAYTIME = _w("morning, afternoon, evening, day")
SEASONS = _w("spring, summer, autumn, winter")
WEEKDAYS = _w("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
MONTHS = _w("""January, February, March, April, May, June, July, August, September, October, November, December""")
SKY = _w("""The sun was shining, The sky was blue, Birds were singing in the trees, White clouds drifted across the sky,
A soft wind was blowing, The air smelled of flowers, Dew was still on the grass, The leaves were turning red and gold,
Snow lay on the roofs, Rain tapped on the windows, Mist lay over the fields, The morning was fresh and clear""")
NIGHT = _w("""The moon was round and bright, The stars were shining, The night was dark and still, An owl called from far away,
The wind whispered in the trees, Everything was quiet, A thin moon hung over the hill, The crickets were singing""")
SAID = _w("said, said, said, said, answered, replied, told {him2}")
SOFTLY = _w("softly, kindly, quietly, with a smile, gently, at once, after a while, in a low voice, cheerfully")
LOUDLY = _w("shouted, cried, called, yelled")
WALK = _w("walked, ran, hurried, went, wandered, marched, trotted")
QUICK = _w("quickly, slowly, bravely, carefully, happily, quietly, all alone")

# present, past, -ing
PLAY_PAST = _w("""played in the grass, jumped over puddles, chased butterflies, looked at the clouds, picked berries,
danced in the rain, splashed in the water, rolled down the hill, climbed a tree, sang songs, told jokes, counted the birds,
built towers of stones, raced to the fence, drew pictures in the sand, collected shells, threw snowballs, swung on the gate,
watched the boats, listened to the bees, ate berries, lay in the sun, gathered leaves, looked for tadpoles,
painted a fence, baked mud pies, rode on the swing, blew soap bubbles, chased {his} shadow, made a crown of flowers,
threw stones into the water, watched the ants, slid down the hill, fed the ducks, whistled a tune, skipped along the path,
looked under every stone, hopped on one leg, balanced on a log, practised somersaults, built a dam, hunted for treasure""")
LIKES = _w("""to sing, to dance, to read books, to look at the stars, to climb trees, to swim, to collect stones, to draw,
to eat {food}, to play {game}, to walk in the rain, to watch the clouds, to help others, to sleep late, to tell jokes,
to ask questions, to build things, to run fast, to listen to stories, to pick flowers, to count the stars, to bake,
to sit by the fire, to make music, to explore {wild}, to splash in puddles, to watch the birds, to ride on the old cart""")
DANGERS = _w("""the bridge was broken, the river was too deep, a big storm was coming, the path was covered with snow,
a tall wall stood in the way, it was getting dark, thick fog covered the path, a fallen tree blocked the road,
the gate was locked, the boat had a hole, the hill was very steep, the ice was thin, the wind was too strong""")
NOISES = _w("""a strange noise, a soft cry, a loud crash, a tiny voice, a deep growl, a tapping sound, a long howl, a splash,
a squeak, a rustle in the leaves, somebody crying, a bell, a song""")
FEARS = _w("""the dark, thunder, deep water, high places, loud noises, the big dog next door, spiders, the old well, being alone,
the attic, ghosts, the wind at night, new people, the cellar, going to school""")
GIFTS = _w("""a {colour} {treasure}, a {shine} {treasure}, a basket of {ingredient}, a bunch of flowers, some {food},
a picture of {friend}, a song, a warm scarf, a jar of honey, a card with a golden star, a bag of nuts""")
MORALS = _w("""it is good to help others, a friend is worth more than gold, it is best to tell the truth,
small steps lead to big things, sharing makes everyone happy, even the smallest can do great things, it is good to ask for help,
patience brings the best fruit, being brave does not mean having no fear, kind words open every door,
it is never too late to say sorry, work is lighter when it is shared, a promise must be kept, you should look before you leap,
everyone is good at something, practice makes hard things easy, home is the best place of all,
it is better to give than to take, listening is as important as speaking, mistakes help us learn""")

HOURS = _w("one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve")

# weather and skies that belong to a season
BY_SEASON = {
    "spring": ("mild, sunny, rainy, fresh, windy, bright, cloudy, warm, fine, breezy, quiet, wet",
               "Birds were singing in the trees, The first flowers were out, Dew was still on the grass, The sky was blue,"
               "White clouds drifted across the sky, A soft wind was blowing, Bees hummed in the blossoms"),
    "summer": ("hot, sunny, warm, bright, dry, fine, lovely, clear, stormy, quiet, hazy",
               "The sun was shining, The sky was blue, The air smelled of flowers, Bees hummed over the grass,"
               "A warm wind was blowing, White clouds drifted across the sky, Swallows flew high in the air"),
    "autumn": ("windy, foggy, rainy, cool, cloudy, grey, stormy, golden, damp, quiet, misty",
               "The leaves were turning red and gold, Rain tapped on the windows, Mist lay over the fields,"
               "Wild geese flew south, Dry leaves danced in the wind, The apples were ripe, The air was fresh and cool"),
    "winter": ("cold, snowy, frosty, grey, quiet, icy, foggy, dark, clear, windy",
               "Snow lay on the roofs, The pond was frozen, Snow was falling, The wind howled around the house,"
               "Smoke rose from the chimneys, The air was cold and clear, Ice flowers grew on the windows"),
}

WORDS = {
    "sky": SKY, "hour": HOURS,
    "girl": GIRLS, "boy": BOYS, "pet": PET_NAMES, "animal": SMALL, "wise": WISE, "kin": KIN, "job": JOBS, "size": SIZE,
    "nature": NATURE, "oldadj": OLD, "colour": COLOUR, "shine": SHINE, "happy": HAPPY, "sad": SAD, "afraid": AFRAID,
    "tired": TIRED, "home": HOMES, "place": PLACES, "wild": WILD, "spot": SPOTS, "treasure": TREASURES, "food": FOODS,
    "ingredient": INGREDIENTS, "flower": FLOWERS, "plant": PLANTS, "tree": TREES, "skill": SKILLS, "game": GAMES,
    "craft": CRAFTS, "material": MATERIALS, "weather": WEATHER, "sky1": SKY, "daytime": DAYTIME, "season": SEASONS,
    "weekday": WEEKDAYS, "month": MONTHS, "sky": SKY, "night": NIGHT, "softly": SOFTLY, "loudly": LOUDLY,
    "walk": WALK, "quick": QUICK, "played": PLAY_PAST, "like": LIKES, "danger": DANGERS, "noise": NOISES, "fear": FEARS,
    "gift": GIFTS, "moral": MORALS,
}
