import { Diary, Random, Storage } from "./index.js";

/** A storage in a folder; several processes may share it. */
export declare function folderStorage(folder: string): Storage;
/** The diary of a Node program. */
export declare function diaryIn(folder: string, options?: { random?: Random }): Diary;
