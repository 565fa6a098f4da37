// What can be switched off on the live page: what it means, what to guess, and why it matters.

const LiveBroken = (() => {
  "use strict";

  const PARTS = {
    residuals: {
      name: "Residual connections",
      what: "Each sub-layer replaces the vector instead of adding to it.",
      why:
        "Every sub-layer was trained to make a correction that is added to its input. " +
        "Without the sum the input is gone after the first sub-layer, and every later one " +
        "receives vectors unlike any it was trained on.",
      chapter: 9,
    },
    feed_forward: {
      name: "Feed-forward layers",
      what: "The six feed-forward networks add nothing.",
      why:
        "Attention only mixes vectors of different positions. The feed-forward networks " +
        "transform each vector, and the next layer’s attention was trained on transformed " +
        "vectors.",
      chapter: 8,
    },
    positions: {
      name: "Positions",
      what: "No positional encoding is added to the embeddings.",
      why:
        "Without positions the encoder sees a set of words. The right words often survive, " +
        "but who does what to whom has to be guessed, and the decoder loses count of what it " +
        "has written.",
      chapter: 7,
    },
    cross_attention: {
      name: "Cross-attention",
      what: "The decoder gets nothing from the encoder.",
      why:
        "The decoder no longer reads the English. What is left is a language model of " +
        "German: it writes the same sentence whatever you type. Try another sentence.",
      chapter: 2,
    },
    causal_mask: {
      name: "The causal mask",
      what: "Every position of the decoder may also attend to later ones.",
      why:
        "The mask matters in training, where the right answer stands to the right of each " +
        "position. While the model writes, the newest position has nothing after it. Only " +
        "the earlier positions change: they now see what comes after them, for which they " +
        "were not trained.",
      chapter: 6,
    },
    scale: {
      name: "The division by √dₖ",
      what: "Scores go into the softmax as they are, eight times as large.",
      why:
        "The softmax becomes sharper, and often that changes little: a trained model’s " +
        "largest score stays the largest. The division matters at the start of training, " +
        "when a sharp softmax passes on almost no gradient.",
      chapter: 4,
    },
  };
  const GUESSES = [
    ["same", "The German stays the same."],
    ["other", "It changes, and is still a German sentence."],
    ["apart", "It falls apart."],
  ];

  return { PARTS, GUESSES };
})();
