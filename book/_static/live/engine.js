// The Transformer of the book in plain JavaScript: tokenizer, encoder, cached decoder, searches.
//
// The package is the definition; tests/browser/test_live_engine.py compares every layer with it.
// Vectors are Float32Array; "rows" are an array of them, one per position: (T, d_model) is T rows.
// Names of recorded values are those of the package's modules, as "decoder.2.cross_attention".
//
// Everything is inside one function, so that a Web Worker can be made from its source: that works
// in a page opened from a folder, where a browser refuses to load a worker from a file.

/** @returns the classes and functions of the engine. */
function makeEngine() {
  "use strict";

  /**
   * @typedef {Float32Array} Vector
   * @typedef {Vector[]} Rows
   * @typedef {Object} Broken parts of the model that are switched off
   * @property {boolean} [residuals] sub-layers replace their input instead of adding to it
   * @property {boolean} [feed_forward] the feed-forward networks add nothing
   * @property {boolean} [positions] no positional encoding
   * @property {boolean} [cross_attention] the attention to the encoder adds nothing
   * @property {boolean} [causal_mask] a position of the decoder may also attend to later ones
   * @property {boolean} [scale] scores are not divided by sqrt(d_k)
   * @property {string[]} [heads] heads whose output is zero, as "encoder.0.self_attention.3"
   *
   * @typedef {Object} Run how to compute
   * @property {Broken} broken
   * @property {(name: string, rows: Rows) => void} [record] receives every intermediate value
   */

  // --- Section 5.1: byte-pair encoding ---------------------------------------------------------

  const PAD = 0;
  const BOS = 1;
  const EOS = 2;
  const SPECIAL = ["<pad>", "<bos>", "<eos>"];

  /** Text to token ids and back: byte-level BPE, as the library `tokenizers` does it. */
  class Tokenizer {
    /** @param {{bytes: number[], merges: number[][]}} data byte of ids 3 to 258; pairs of ids */
    constructor({ bytes, merges }) {
      const first = SPECIAL.length;
      this.pieces = [[], [], [], ...bytes.map((byte) => [byte])]; // bytes of each id
      this.idOfByte = new Map(bytes.map((byte, i) => [byte, first + i]));
      this.ranks = new Map(); // pair of ids -> the id it merges into; lower ids merge first
      for (const [left, right] of merges) {
        this.ranks.set(left * 65536 + right, this.pieces.length);
        this.pieces.push([...this.pieces[left], ...this.pieces[right]]);
      }
      // Words keep the space before them, so that no space is lost.
      const space = "\\p{White_Space}";
      const kinds = [
        "'s|'t|'re|'ve|'m|'ll|'d", // of English, such as "it's"
        " ?\\p{L}+", // letters
        " ?\\p{N}+", // numbers
        ` ?[^${space}\\p{L}\\p{N}]+`, // other characters
        `${space}+(?!\\P{White_Space})`, // spaces, but for the one before a word
        `${space}+`,
      ];
      this.words = new RegExp(kinds.join("|"), "gu");
      this.cache = new Map();
    }

    /** @param {string} text @returns {number[]} ids without special tokens */
    encode(text) {
      return (text.match(this.words) ?? []).flatMap((word) => this.encodeWord(word));
    }

    /** Ids of a sentence as the translator makes them: single spaces, EOS at the end. */
    encodeSentence(text) {
      return [...this.encode(text.trim().replace(/[\p{White_Space}\x1c-\x1f]+/gu, " ")), EOS];
    }

    /** Apply the merges to one word: always the pair that was learned first. */
    encodeWord(word) {
      const known = this.cache.get(word);
      if (known) return known;
      const ids = [...new TextEncoder().encode(word)].map((byte) => this.idOfByte.get(byte));
      for (;;) {
        let best = Infinity;
        for (let i = 0; i + 1 < ids.length; i++) {
          best = Math.min(best, this.ranks.get(ids[i] * 65536 + ids[i + 1]) ?? Infinity);
        }
        if (best === Infinity) break;
        for (let i = 0; i + 1 < ids.length; i++) {
          if (this.ranks.get(ids[i] * 65536 + ids[i + 1]) === best) ids.splice(i, 2, best);
        }
      }
      if (this.cache.size < 20000) this.cache.set(word, ids);
      return ids;
    }

    /** @param {number[]} ids @returns {string} their text; special tokens have none */
    decode(ids) {
      const bytes = ids.flatMap((id) => this.pieces[id] ?? []);
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes));
    }

    /** A readable label: a space is shown as "▁", part of a character by its bytes. */
    label(id) {
      if (id < SPECIAL.length) return SPECIAL[id];
      const bytes = new Uint8Array(this.pieces[id]);
      try {
        const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
        return text.replaceAll(" ", "▁");
      } catch {
        const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
        return [...bytes].map((byte) => `<0x${hex(byte)}>`).join("");
      }
    }
  }

  // --- The weights -----------------------------------------------------------------------------

  /** A matrix of int8 rows: an entry is its int8 number times the scale of its row. */
  class Matrix {
    /** @param {number} rows @param {number} columns @param {Int8Array} values (rows * columns)
     *  @param {Vector} scales (rows) */
    constructor(rows, columns, values, scales) {
      Object.assign(this, { rows, columns, values, scales });
    }

    /** Row i as numbers, each times `factor`. */
    row(i, factor = 1) {
      const row = new Float32Array(this.columns);
      const start = i * this.columns;
      for (let j = 0; j < row.length; j++)
        row[j] = this.values[start + j] * this.scales[i] * factor;
      return row;
    }
  }

  /** x W^T + b for each row. A row of W is read once for all rows of x. */
  function linear(x, { rows, columns, values, scales }, bias) {
    const outputs = x.map(() => new Float32Array(rows));
    for (let r = 0; r < rows; r++) {
      const start = r * columns;
      for (let i = 0; i < x.length; i++) {
        const input = x[i];
        // Four sums at a time are faster than one.
        let a = 0;
        let b = 0;
        let c = 0;
        let d = 0;
        for (let j = 0; j < columns; j += 4) {
          a += input[j] * values[start + j];
          b += input[j + 1] * values[start + j + 1];
          c += input[j + 2] * values[start + j + 2];
          d += input[j + 3] * values[start + j + 3];
        }
        outputs[i][r] = (a + b + c + d) * scales[r] + (bias ? bias[r] : 0);
      }
    }
    return outputs;
  }

  function dot(a, b, start = 0, end = a.length) {
    let sum = 0;
    for (let j = start; j < end; j++) sum += a[j] * b[j];
    return sum;
  }

  /** exp(x) / sum(exp(x)), in double precision. */
  function softmax(scores) {
    let largest = -Infinity;
    for (const score of scores) largest = Math.max(largest, score);
    const powers = Float64Array.from(scores, (score) => Math.exp(score - largest));
    let sum = 0;
    for (const power of powers) sum += power;
    return powers.map((power) => power / sum);
  }

  // --- Section 3: the model --------------------------------------------------------------------

  class Transformer {
    /**
     * @param {Object} payload what the build wrote (book/transformer_book/live.py)
     * @param {Object} payload.config sizes, as in the package's config.json
     * @param {Object[]} payload.tensors name, shape and place of each tensor
     * @param {Uint8Array} payload.bytes the tensors
     */
    constructor({ config, tensors, bytes }) {
      this.config = config;
      this.weights = {};
      const numbers = (start, count) => new Float32Array(bytes.buffer, start, count);
      for (const { name, shape, start, scales } of tensors) {
        const [rows, columns] = shape;
        this.weights[name] =
          scales === undefined
            ? numbers(start, rows)
            : new Matrix(
                rows,
                columns,
                new Int8Array(bytes.buffer, start, rows * columns),
                numbers(scales, rows),
              );
      }
      this.d_k = config.d_model / config.num_heads;
    }

    // --- Section 3.4: embeddings; section 3.5: positions

    /** E[id] * sqrt(d_model) + PE(position), for tokens at positions from `start` on. */
    embed(ids, start, stack, run) {
      const { d_model } = this.config;
      const tokens = ids.map((id) => this.weights["embedding.weight"].row(id, Math.sqrt(d_model)));
      run.record?.(`${stack}.embedding`, tokens);
      const x = run.broken.positions
        ? tokens
        : tokens.map((token, t) => token.map((v, j) => v + this.sinusoid(start + t, j)));
      run.record?.(`${stack}.input`, x);
      return x;
    }

    /** Sines in even columns, cosines in odd ones, with wavelengths from 2 pi to 10000 * 2 pi. */
    sinusoid(position, column) {
      const even = column - (column % 2);
      const angle = position / 10000 ** (even / this.config.d_model);
      return Math.fround(column % 2 ? Math.cos(angle) : Math.sin(angle));
    }

    // --- Section 3.2: attention

    project(x, name) {
      return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
    }

    /**
     * Concat(head_1, ..., head_h) W^O, where head = softmax(q K^T / sqrt(d_k)) V.
     *
     * A mask is a shorter list of keys: a query gets only the rows that it may attend to.
     *
     * @param {string} name of the attention
     * @param {Rows} queries of all heads, one row per position that attends
     * @param {(i: number) => Rows} keysOf the keys that query i may attend to
     * @param {(i: number) => Rows} valuesOf their values
     * @param {Run} run
     */
    attend(name, queries, keysOf, valuesOf, run) {
      const { d_model, num_heads } = this.config;
      const size = this.d_k;
      const scale = run.broken.scale ? 1 : 1 / Math.sqrt(size);
      const maps = Array.from({ length: num_heads }, () => []);
      const heads = queries.map((query, i) => {
        const [keys, values] = [keysOf(i), valuesOf(i)];
        const output = new Float32Array(d_model);
        for (let head = 0; head < num_heads; head++) {
          const [from, to] = [head * size, (head + 1) * size];
          const weights = softmax(keys.map((key) => dot(query, key, from, to) * scale));
          maps[head].push(Float32Array.from(weights));
          if (run.broken.heads?.includes(`${name}.${head}`)) continue;
          weights.forEach((weight, s) => {
            for (let j = from; j < to; j++) output[j] += weight * values[s][j];
          });
        }
        return output;
      });
      if (run.record) {
        maps.forEach((map, head) => run.record(`${name}.weights.${head}`, map));
        run.record(`${name}.heads`, heads);
      }
      return this.project(heads, `${name}.output_projection`);
    }

    /** Queries, or keys, or values, of all heads. */
    projected(x, name, kind, run) {
      const rows = this.project(x, `${name}.${kind}_projection`);
      run.record?.(`${name}.${kind}`, rows);
      return rows;
    }

    /** Attention of rows to rows: of x to itself if `memory` is x. */
    attention(name, x, memory, run, causal = false) {
      const query = this.projected(x, name, "query", run);
      const key = this.projected(memory, name, "key", run);
      const value = this.projected(memory, name, "value", run);
      const visible = (rows) => (i) => (causal ? rows.slice(0, i + 1) : rows);
      return this.attend(name, query, visible(key), visible(value), run);
    }

    // --- Section 3.3: the feed-forward network

    /** max(0, x W_1 + b_1) W_2 + b_2 */
    feedForward(name, x, run) {
      const hidden = this.project(x, `${name}.hidden`);
      for (const row of hidden) {
        for (let j = 0; j < row.length; j++) row[j] = Math.max(0, row[j]);
      }
      run.record?.(`${name}.hidden`, hidden);
      return this.project(hidden, `${name}.output`);
    }

    // --- Section 3.1: residual connection and layer norm, layers, stacks

    /** LayerNorm(x + sublayer(x)); a sub-layer that is switched off is null and adds nothing. */
    addAndNorm(name, x, sublayer, run) {
      const output = sublayer && sublayer();
      const sum = x.map((row, i) =>
        !output ? row : run.broken.residuals ? output[i] : row.map((v, j) => v + output[i][j]),
      );
      if (run.record) {
        if (output) run.record(`${name}.sublayer`, output);
        run.record(`${name}.sum`, sum);
      }
      const rows = sum.map((row) => this.layerNorm(`${name}_residual.norm`, row));
      run.record?.(`${name}.norm`, rows);
      return rows;
    }

    layerNorm(name, row) {
      const [gain, bias] = [this.weights[`${name}.weight`], this.weights[`${name}.bias`]];
      const mean = row.reduce((sum, v) => sum + v, 0) / row.length;
      const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / row.length;
      const scale = 1 / Math.sqrt(variance + this.config.layer_norm_eps);
      return row.map((v, j) => (v - mean) * scale * gain[j] + bias[j]);
    }

    /** @param {number[]} source ids, EOS last @param {Run} run @returns {Rows} the memory */
    encode(source, run) {
      let x = this.embed(source, 0, "encoder", run);
      for (let layer = 0; layer < this.config.num_layers; layer++) {
        const attention = `encoder.${layer}.self_attention`;
        const feedForward = `encoder.${layer}.feed_forward`;
        x = this.addAndNorm(attention, x, () => this.attention(attention, x, x, run), run);
        const y = x;
        x = this.addAndNorm(
          feedForward,
          y,
          run.broken.feed_forward ? null : () => this.feedForward(feedForward, y, run),
          run,
        );
      }
      return x;
    }

    /** One decoder layer; the two functions compute its two attentions. */
    decoderLayer(layer, x, attendToTarget, attendToSource, run) {
      const name = (sublayer) => `decoder.${layer}.${sublayer}`;
      const y = this.addAndNorm(name("self_attention"), x, () => attendToTarget(x), run);
      const z = this.addAndNorm(
        name("cross_attention"),
        y,
        run.broken.cross_attention ? null : () => attendToSource(y),
        run,
      );
      const network = () => this.feedForward(name("feed_forward"), z, run);
      return this.addAndNorm(
        name("feed_forward"),
        z,
        run.broken.feed_forward ? null : network,
        run,
      );
    }

    /** All positions of the decoder at once, as in training. @returns {Rows} its states */
    decode(target, memory, run) {
      let x = this.embed(target, 0, "decoder", run);
      for (let layer = 0; layer < this.config.num_layers; layer++) {
        const name = `decoder.${layer}`;
        const causal = !run.broken.causal_mask;
        x = this.decoderLayer(
          layer,
          x,
          (y) => this.attention(`${name}.self_attention`, y, y, run, causal),
          (y) => this.attention(`${name}.cross_attention`, y, memory, run),
          run,
        );
      }
      return x;
    }

    /** Keys and values of the source for each decoder layer, which every step uses again. */
    startDecoding(memory, run) {
      return Array.from({ length: this.config.num_layers }, (_, layer) => {
        const name = `decoder.${layer}.cross_attention`;
        const quiet = { broken: run.broken };
        return {
          key: this.projected(memory, name, "key", quiet),
          value: this.projected(memory, name, "value", quiet),
        };
      });
    }

    /**
     * The newest position of each hypothesis alone; the caches hold the earlier ones.
     *
     * @param {number[]} tokens the newest token of each hypothesis
     * @param {{key: Rows, value: Rows}[][]} caches of each hypothesis, by layer; they grow
     * @param {{key: Rows, value: Rows}[]} source from startDecoding
     * @returns {Rows} states, one per hypothesis
     */
    step(tokens, caches, source, run) {
      const position = caches[0][0].key.length;
      let x = tokens.map((token) => this.embed([token], position, "decoder", run)[0]);
      for (let layer = 0; layer < this.config.num_layers; layer++) {
        const name = `decoder.${layer}`;
        const attendToTarget = (y) => {
          const attention = `${name}.self_attention`;
          const query = this.projected(y, attention, "query", run);
          this.projected(y, attention, "key", run).forEach((row, i) =>
            caches[i][layer].key.push(row),
          );
          const value = this.projected(y, attention, "value", run);
          value.forEach((row, i) => caches[i][layer].value.push(row));
          const past = (kind) => (i) => caches[i][layer][kind];
          return this.attend(attention, query, past("key"), past("value"), run);
        };
        const attendToSource = (y) => {
          const attention = `${name}.cross_attention`;
          const query = this.projected(y, attention, "query", run);
          const { key, value } = source[layer];
          return this.attend(
            attention,
            query,
            () => key,
            () => value,
            run,
          );
        };
        x = this.decoderLayer(layer, x, attendToTarget, attendToSource, run);
      }
      return x;
    }

    emptyCache() {
      return Array.from({ length: this.config.num_layers }, () => ({ key: [], value: [] }));
    }

    // --- Section 3.4: the output projection, which is the embedding matrix

    /** @returns {Vector} one logit per token of the vocabulary */
    logits(state) {
      return linear([state], this.weights["embedding.weight"])[0];
    }
  }

  /** log softmax; padding and BOS are never produced. @returns {Float64Array} (V) */
  function logProbabilities(logits) {
    let largest = -Infinity;
    for (const logit of logits) largest = Math.max(largest, logit);
    let sum = 0;
    for (const logit of logits) sum += Math.exp(logit - largest);
    const total = largest + Math.log(sum);
    const found = Float64Array.from(logits, (logit) => logit - total);
    found[PAD] = found[BOS] = -Infinity;
    return found;
  }

  /** The `count` largest values and their places; the first of equal ones wins. */
  function largest(values, count) {
    const found = []; // best first
    for (let i = 0; i < values.length; i++) {
      if (found.length === count && values[i] <= values[found[count - 1]]) continue;
      let place = found.length;
      while (place > 0 && values[found[place - 1]] < values[i]) place--;
      found.splice(place, 0, i);
      found.length = Math.min(found.length, count);
    }
    return found;
  }

  // --- Section 6.1: search ---------------------------------------------------------------------

  /** Most tokens of an output, EOS included: the input's, without EOS, plus 50. */
  const maxLength = (source) => source.length - 1 + 50;

  /**
   * Greedy search, one token per iteration.
   *
   * @param {Transformer} model
   * @param {number[]} source ids, EOS last
   * @param {{forced?: number[], broken?: Broken, count?: number, limit?: number}} options ids that
   *   the output has to begin with; what is broken; how many alternatives to list; most tokens
   * @yields {{id: number, forced: boolean, best: {id: number, probability: number}[],
   *   cross: Vector[][]}} cross[layer][head] are the weights of this step
   */
  function* greedy(model, source, { forced = [], broken = {}, count = 10, limit } = {}) {
    const { num_layers, num_heads } = model.config;
    const run = { broken };
    const memory = model.encode(source, run);
    const projected = model.startDecoding(memory, run);
    const cache = model.emptyCache();
    const longest = limit ?? maxLength(source);
    const tokens = [BOS];
    while (tokens.length <= longest && (tokens.at(-1) !== EOS || tokens.length === 1)) {
      const seen = {};
      const recording = { broken, record: (name, rows) => (seen[name] = rows) };
      // Without a causal mask the earlier positions change with every new token: no cache.
      const states = broken.causal_mask
        ? model.decode(tokens, memory, recording)
        : model.step([tokens.at(-1)], [cache], projected, recording);
      const found = logProbabilities(model.logits(states.at(-1)));
      const best = largest(found, count);
      const place = tokens.length - 1;
      const id = place < forced.length ? forced[place] : best[0];
      const map = (layer, head) => seen[`decoder.${layer}.cross_attention.weights.${head}`]?.at(-1);
      tokens.push(id);
      yield {
        id,
        forced: place < forced.length,
        probability: Math.exp(found[id]),
        best: best.map((each) => ({ id: each, probability: Math.exp(found[each]) })),
        cross: Array.from({ length: num_layers }, (_, layer) =>
          Array.from({ length: num_heads }, (_, head) => map(layer, head) ?? new Float32Array(0)),
        ),
      };
    }
  }

  /** Length penalty of GNMT: ((5 + |Y|) / 6)^alpha. */
  const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

  /**
   * Beam search, one step per iteration; the return value is the list of hypotheses, best first.
   *
   * @param {Transformer} model
   * @param {number[]} source ids, EOS last
   * @param {{beamSize?: number, alpha?: number, broken?: Broken}} options
   * @yields {{parent: number, id: number, total: number, kept: boolean, ended: boolean}[]} the
   *   2 * beamSize candidates of the step; parent is a place among those kept in the last step
   */
  function* beamSearch(model, source, { beamSize = 4, alpha = 0.6, broken = {} } = {}) {
    const run = { broken };
    const memory = model.encode(source, run);
    const projected = model.startDecoding(memory, run);
    const limit = maxLength(source);
    const score = (total, length) => total / lengthPenalty(length, alpha);
    let alive = [{ tokens: [], total: 0, cache: model.emptyCache() }];
    let finished = [];
    for (let length = 1; length <= limit; length++) {
      const newest = alive.map((each) => each.tokens.at(-1) ?? BOS);
      const states = broken.causal_mask
        ? alive.map((each) => model.decode([BOS, ...each.tokens], memory, run).at(-1))
        : model.step(
            newest,
            alive.map((each) => each.cache),
            projected,
            run,
          );
      const candidates = states.flatMap((state, parent) => {
        const found = logProbabilities(model.logits(state));
        const best = largest(found, 2 * beamSize).sort((a, b) => a - b); // equal: lower id first
        return best.map((id) => ({ parent, id, total: alive[parent].total + found[id] }));
      });
      candidates.sort((a, b) => b.total - a.total); // stable: equal ones stay in this order
      candidates.length = Math.min(candidates.length, 2 * beamSize);
      const ending = candidates.filter((each) => each.id === EOS);
      const going = candidates.filter((each) => each.id !== EOS).slice(0, beamSize);
      yield candidates.map((each) => ({
        ...each,
        kept: going.includes(each),
        ended: each.id === EOS,
      }));
      const ended = ending.map(({ parent, total }) => ({
        tokens: alive[parent].tokens,
        total,
        score: score(total, length),
        finished: true,
      }));
      finished = [...finished, ...ended].sort((a, b) => b.score - a.score).slice(0, beamSize);
      alive = going.map(({ parent, id, total }) => ({
        tokens: [...alive[parent].tokens, id],
        total,
        // The rows of the past are shared, not copied.
        cache: alive[parent].cache.map(({ key, value }) => ({ key: [...key], value: [...value] })),
      }));
      // No longer output can beat this: a total only falls, the penalty is largest at the limit.
      const favourable = Math.max(lengthPenalty(length + 1, alpha), lengthPenalty(limit, alpha));
      const bound = alive.length ? alive[0].total / favourable : -Infinity;
      if (finished.length && finished[0].score >= bound) break;
    }
    const open = alive.map(({ tokens, total }) => ({
      tokens,
      total,
      score: score(total, limit),
      finished: false,
    }));
    return [...finished, ...open].slice(0, beamSize);
  }

  /**
   * Every intermediate value of one sentence pair, by name.
   *
   * @param {Transformer} model
   * @param {number[]} source ids, EOS last
   * @param {number[]} target the decoder's input: BOS, then the output without its last token
   * @param {Broken} broken
   * @returns {Object<string, Rows>} "logits" has a row per position of the target
   */
  function trace(model, source, target, broken = {}) {
    const values = {};
    const run = { broken, record: (name, rows) => (values[name] = rows) };
    const states = model.decode(target, model.encode(source, run), run);
    values.logits = states.map((state) => model.logits(state));
    return values;
  }

  /** The bytes of a payload's parts in base64. @returns {Uint8Array} */
  function bytesOf(parts, size) {
    const bytes = new Uint8Array(size);
    let start = 0;
    for (const part of parts) {
      const text = atob(part);
      for (let i = 0; i < text.length; i++) bytes[start + i] = text.charCodeAt(i);
      start += text.length;
    }
    if (start !== size) throw new Error(`the weights must have ${size} bytes, got ${start}`);
    return bytes;
  }

  /** @param {Object} payload header of the payload, with its parts in base64 */
  function load(payload) {
    const bytes = bytesOf(payload.parts, payload.size);
    return {
      model: new Transformer({ ...payload, bytes }),
      tokenizer: new Tokenizer(payload.tokenizer),
    };
  }

  // --- The worker ------------------------------------------------------------------------------

  /**
   * Answer messages. A newer request of the same task stops the one that is running, between two
   * tokens; so every answer is to the newest request.
   */
  function serve(port) {
    let loaded;
    const newest = {};
    const pause = () => new Promise((done) => setTimeout(done));

    /** "translate": every token as it comes, then every intermediate value. */
    async function translate({ text, forced, broken }, say, isOld) {
      const { model, tokenizer } = loaded;
      const source = tokenizer.encodeSentence(text);
      const label = (each) => ({ ...each, label: tokenizer.label(each.id) });
      const began = performance.now();
      say("source", { source: source.map((id) => label({ id })) });
      const output = [];
      for (const step of greedy(model, source, { forced, broken })) {
        output.push(step.id);
        const text = tokenizer.decode(output).trim();
        say("token", { step: { ...label(step), best: step.best.map(label) }, text });
        await pause();
        if (isOld()) return;
      }
      say("finished", {
        finished: output.at(-1) === EOS,
        milliseconds: performance.now() - began,
      });
      await pause();
      if (isOld()) return;
      say("trace", { values: trace(model, source, [BOS, ...output.slice(0, -1)], broken) });
    }

    /** "whole": only the text, of the model with nothing broken. */
    async function whole({ text }, say, isOld) {
      const { model, tokenizer } = loaded;
      const output = [];
      for (const step of greedy(model, tokenizer.encodeSentence(text))) {
        output.push(step.id);
        await pause();
        if (isOld()) return;
      }
      say("text", { text: tokenizer.decode(output).trim() });
    }

    /** "beam": all steps of a search and its hypotheses. */
    async function beam({ text, broken }, say, isOld) {
      const { model, tokenizer } = loaded;
      const search = beamSearch(model, tokenizer.encodeSentence(text), { broken });
      const steps = [];
      for (;;) {
        const { done, value } = search.next();
        if (done) {
          const hypotheses = value.map((each) => ({
            ...each,
            text: tokenizer.decode(each.tokens).trim(),
          }));
          say("beams", { steps, hypotheses });
          return;
        }
        steps.push(value.map((each) => ({ ...each, label: tokenizer.label(each.id) })));
        await pause();
        if (isOld()) return;
      }
    }

    const tasks = { translate, whole, beam };
    port.onmessage = async ({ data }) => {
      const { task, id } = data;
      const say = (kind, rest) => port.postMessage({ task, id, kind, ...rest });
      newest[task] = id;
      try {
        if (task === "load") {
          loaded = load(data.payload);
          say("ready", { config: loaded.model.config });
        } else {
          await tasks[task](data, say, () => newest[task] !== id);
        }
      } catch (error) {
        say("failed", { message: error.message });
      }
    };
  }

  return {
    Tokenizer,
    Transformer,
    beamSearch,
    greedy,
    largest,
    lengthPenalty,
    load,
    logProbabilities,
    maxLength,
    serve,
    softmax,
    trace,
    BOS,
    EOS,
  };
}

if (typeof module !== "undefined") module.exports = makeEngine;
