// An output item while it grows, and the events that tell of it.

/**
 * Tells of one event. `fields` are those beside its type and its number; they are read at once.
 */
export type Emit = (type: string, fields: object) => void;

/** How an item ended. "incomplete": it was cut. */
export type ItemStatus = "completed" | "incomplete";

/** An item that still grows. */
export interface OpenItem<Piece> {
  add(piece: Piece): void;
  /**
   * "incomplete": the reply was cut. An item that was whole before that is complete all the same.
   */
  end(status: ItemStatus): void;
}

/** Begins an item and tells of it. Its end is told by what is returned. */
export type BeginItem = (item: { readonly id: string }) => ItemEvents;

/** The events of one item. */
export interface ItemEvents {
  /** Where the item is: fields of all its events but the first and the last. */
  readonly place: { readonly item_id: string; readonly output_index: number };
  readonly emit: Emit;
  /** Tells that the item has ended, and what it is. */
  end(item: object): void;
}
