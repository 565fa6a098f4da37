// The tour of the live page: twelve stops on the book's sentence. Each sets the state of the page.

const LiveTour = {
  stops: [
    {
      state: { t: 0 },
      title: "A sentence goes in, tokens come out",
      text:
        "The model reads the English once and writes the German one token at a time. Each " +
        "new token depends on the English and on the German written so far.",
      task: "Choose a German token and read its alternatives on the right.",
      chapters: [1],
    },
    {
      state: { t: 3 },
      title: "Words are cut into tokens",
      text:
        "The model does not see letters or words. “didn't” is two tokens, and “überquerte” " +
        "is written in two pieces, because the vocabulary holds 8,000 frequent ones.",
      task: "Type a rare word into the sentence and see into how many pieces it falls.",
      chapters: [13],
    },
    {
      state: { z: "stack", k: 1, t: 1 },
      title: "A token becomes a vector",
      text:
        "Each token is looked up in a table of vectors with 256 numbers. It is the lowest " +
        "strip of each column. Everything that follows is arithmetic on such vectors.",
      task: "Choose another English token and compare the lowest strips.",
      chapters: [10],
    },
    {
      state: { z: "stack", k: 5, t: 4 },
      title: "Positions are added",
      text:
        "Attention alone cannot tell the first word from the last. So waves that depend on " +
        "the position are added to the vector. “the” has the same token vector in every " +
        "place of a sentence, but another sum in each.",
      task: "Below, under “Break it”, switch the positions off, and repair the model again.",
      chapters: [7],
    },
    {
      state: { z: "layer", a: "encoder", l: 0, t: 8 },
      title: "English tokens look at each other",
      text:
        "In self-attention every token asks all others. Head 3 often looks one token ahead: see " +
        "the diagonal. In layer 2, head 4 mostly looks one token back.",
      task: "Move over the row of “it” and compare the heads, here and in layer 2.",
      chapters: [2, 22],
    },
    {
      state: { z: "head", a: "encoder", l: 0, h: 2, t: 8, k: 9 },
      title: "A query meets a key",
      text:
        "The query of “it” and the key of “was” have 64 numbers each. They are multiplied " +
        "one by one, and the products are added: one score for one pair of tokens.",
      task: "Choose another key and watch the running sum.",
      chapters: [2],
    },
    {
      state: { z: "head", a: "cross", l: 2, h: 2, t: 11, k: 11 },
      title: "Scores become weights",
      text:
        "The score is divided by 8, the root of 64, and the softmax turns the scores of all " +
        "keys into weights that sum to 1. The values, added with these weights, are the " +
        "head’s output.",
      task: "Read steps 2 to 4. Which key has nearly all the weight?",
      chapters: [4],
    },
    {
      state: { z: "layer", a: "cross", l: 1, t: 6 },
      title: "Four heads look in four ways",
      text:
        "All heads of a layer read the same vectors, with other matrices. One weighted mean " +
        "could not serve several purposes at a time; four can.",
      task: "Mute a head and see whether the translation changes.",
      chapters: [5],
    },
    {
      state: { z: "layer", a: "decoder", l: 1, t: 8 },
      title: "Later tokens are hidden",
      text:
        "In the decoder’s self-attention the upper right is empty: a position may not look " +
        "at later ones. In training the later tokens are the answer.",
      task: "Compare the triangle with the encoder’s squares, under “Attention”.",
      chapters: [6],
    },
    {
      state: { z: "sentence", l: 2, h: 2, t: 11 },
      title: "German looks back at English",
      text:
        "Cross-attention joins the two halves. While the model writes “müde”, this head " +
        "gives “tired” nearly all its weight, across a different word order.",
      task: "Walk through the German tokens with the arrow keys and follow the arcs.",
      chapters: [22],
    },
    {
      state: { z: "stack", k: 11, t: 11 },
      title: "Every part adds to one stream",
      text:
        "Attention and feed-forward layers do not replace a vector, they add to it; a layer " +
        "norm follows. The path of sums from bottom to top is what keeps a deep model " +
        "trainable.",
      task: "Below, under “Break it”, switch the residual connections off.",
      chapters: [8, 9],
    },
    {
      state: { z: "output", t: 2 },
      title: "From a vector to a word",
      text:
        "The last vector is compared with the embeddings of all 8,000 tokens. Beam search " +
        "follows four beginnings at a time and may find a better sentence than the first " +
        "choice at every step.",
      task: "Move the temperature, and follow the strong line through the tree.",
      chapters: [17],
    },
  ],
};
