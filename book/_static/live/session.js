// What the live page computes with: the payload, the worker, and the state in the address.

/**
 * The model in a worker. Requests replace each other: only the newest of a task is answered.
 */
class LiveModel {
  /** @param {string} folder address of the folder with the scripts of the weights, with a "/"
   *  @param {string} version of the weights, so that a cache never mixes two */
  constructor(folder, version) {
    Object.assign(this, { folder, version, config: null });
    this.requests = {}; // the newest of each task: its id and what to call
  }

  /** Load the weights once. @param {(done: number, count: number) => void} onProgress */
  load(onProgress) {
    this.loading ??= this.start(onProgress).catch((error) => {
      this.loading = undefined; // the reader may try again
      throw error;
    });
    return this.loading;
  }

  async start(onProgress) {
    const parts = [];
    let header;
    window.liveWeights = (number, content) => {
      if (number) parts[number - 1] = content;
      else header = content;
    };
    await this.script(0);
    for (let number = 1; number <= header.count; number++) {
      onProgress(number - 1, header.count);
      await this.script(number);
    }
    onProgress(header.count, header.count);
    delete window.liveWeights;
    // A worker from a Blob also starts in a page that was opened from a folder.
    const source = `"use strict";(${makeEngine})().serve(self);`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(address);
    await new Promise((resolve, reject) => {
      this.worker.onerror = (event) => reject(new Error(event.message || "the worker stopped"));
      this.worker.onmessage = ({ data }) => {
        if (data.kind !== "ready") return reject(new Error(data.message));
        this.config = data.config;
        resolve();
      };
      this.worker.postMessage({ task: "load", payload: { ...header, parts } });
    });
    URL.revokeObjectURL(address);
    this.worker.onmessage = ({ data }) => this.receive(data);
  }

  script(number) {
    return new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = `${this.folder}weights-${number}.js?v=${this.version}`;
      element.onload = () => resolve(element.remove());
      element.onerror = () => {
        element.remove();
        reject(new Error(`the file weights-${number}.js did not load`));
      };
      document.head.append(element);
    });
  }

  receive({ task, id, kind, ...rest }) {
    const request = this.requests[task];
    if (id === request?.id) request.listeners[kind]?.(rest);
  }

  /**
   * @param {"translate"|"whole"|"beam"} task
   * @param {Object} request its arguments, see the worker
   * @param {Object<string, (answer: Object) => void>} listeners by kind of answer
   */
  ask(task, request, listeners) {
    const id = (this.requests[task]?.id ?? 0) + 1;
    this.requests[task] = { id, listeners };
    this.worker.postMessage({ task, id, ...request });
  }

  /** Ignore what is still to come of a task. */
  drop(task) {
    if (this.requests[task]) this.requests[task].listeners = {};
  }
}

/** What the reader looks at. It is kept in the address, so that a link shows the same. */
const LiveState = {
  defaults: {
    s: "", // the sentence
    z: "sentence", // level of zoom
    f: [], // ids that the output begins with, because the reader chose one of them
    t: -1, // position of the output, -1 for the last one
    k: -1, // position of the key, -1 for the one with the largest weight
    a: "cross", // which attention
    l: 2, // layer
    h: -1, // head, -1 for the mean of the layer's heads
    b: [], // what is broken
    stop: -1, // of the tour
  },

  read(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const state = structuredClone(this.defaults);
    for (const [name, standard] of Object.entries(this.defaults)) {
      const text = given.get(name);
      if (text === null) continue;
      if (name === "f")
        state.f = text
          .split(".")
          .map(Number)
          .filter((id) => id > 1 && id < 65536);
      else if (name === "b") state.b = text.split(" ").filter(Boolean);
      else if (typeof standard === "number") state[name] = Number.parseInt(text, 10) || 0;
      else state[name] = text;
    }
    return state;
  },

  write(state) {
    const kept = new URLSearchParams();
    for (const [name, standard] of Object.entries(this.defaults)) {
      const value = state[name];
      if (JSON.stringify(value) === JSON.stringify(standard)) continue;
      kept.set(name, Array.isArray(value) ? value.join(name === "f" ? "." : " ") : value);
    }
    return `#${kept}`;
  },
};
