export const extension = { name: "books" };
