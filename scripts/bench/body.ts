// The request that all targets of the benchmark get.

/** A request's body, with `filler` bytes of text beside the words that the provider looks for. */
export function bodyOf(words: string, model: string, filler = 200): string {
  const messages = [
    { role: "system", content: words },
    {
      role: "user",
      content: "How does it begin? ".repeat(Math.ceil(filler / 19)).slice(0, filler),
    },
  ];
  return JSON.stringify({ model, stream: words.startsWith("events"), temperature: 0.5, messages });
}
