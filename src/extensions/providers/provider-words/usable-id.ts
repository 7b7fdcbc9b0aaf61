// The ids of tool calls.

/**
 * Whether a later turn can go to any provider with a call of this id. Some refuse other characters,
 * or more of them. A shorter id may be that of another call: some providers count from 0 in each
 * reply.
 */
export const isUsableId = (id: string): boolean => /^[\w-]{9,64}$/.test(id);
