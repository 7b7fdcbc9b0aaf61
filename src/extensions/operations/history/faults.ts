// The last fault of each model: when it was, and what the provider said.
import type { ModelFault } from "./contracts.ts";

/** Models whose last fault is remembered. */
const MAX_MODELS = 200;

export interface Faults {
  /** Keeps those that are not older than what is known of their model. */
  add(faults: Iterable<ModelFault>): void;
  /** One of each model. */
  all(): readonly ModelFault[];
}

export function createFaults(): Faults {
  const byModel = new Map<string, ModelFault>();

  function addOne(fault: ModelFault): void {
    const known = byModel.get(fault.model);
    if (known && known.time > fault.time) return;
    byModel.delete(fault.model);
    byModel.set(fault.model, fault);
    const [oldest] = byModel.keys();
    if (byModel.size > MAX_MODELS && oldest !== undefined) byModel.delete(oldest);
  }

  return {
    add(faults) {
      for (const fault of faults) addOne(fault);
    },
    all: () => [...byModel.values()],
  };
}
