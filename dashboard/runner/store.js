// What the browser keeps, in IndexedDB: it survives a reload and a crash.

let opened = null;

function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("foretell", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("kept");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function run(mode, work) {
  const transaction = (await database()).transaction("kept", mode, { durability: "strict" });
  const request = work(transaction.objectStore("kept"));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}

const from = (prefix) => IDBKeyRange.bound(prefix, `${prefix}\uffff`);

export const read = async (key, otherwise) => (await run("readonly", (kept) => kept.get(key))) ?? otherwise;
export const write = (key, value) => run("readwrite", (kept) => kept.put(value, key));
export const all = (prefix) => run("readonly", (kept) => kept.getAll(from(prefix)));
export const erase = (prefix) => run("readwrite", (kept) => kept.delete(from(prefix)));

// Does this browser really keep what it is given?
export async function keeps() {
  try {
    const mark = String(Math.random());
    await write("test", mark);
    const same = (await read("test")) === mark;
    await erase("test");
    return same;
  } catch {
    return false;
  }
}
