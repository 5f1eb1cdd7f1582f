/** A rational number `[numerator, denominator]`. */
export type Rational = readonly [bigint, bigint];
/** Puts fresh random bytes into an array of at most 65,536 bytes. */
export type Random = (array: Uint8Array) => unknown;
/** SHA-256. */
export type Hash = (content: Uint8Array) => Uint8Array;
/** What a person holds: value by key. Contents never throw; what is no value of the study is absent. */
export type Pairs = ReadonlyMap<string | number | bigint, unknown> | Readonly<Record<string | number, unknown>>;

export type Protocol =
  | "kv3"
  | "privkv"
  | "privkv-tight"
  | "privkvm"
  | "rr-f"
  | "pckv-ue"
  | "pckv-grr"
  | "pckv-grr+"
  | "set"
  | "set-f";

export declare const PROTOCOLS: readonly Protocol[];

/** One channel in whole numbers out of 2^bits. */
export interface Table {
  readonly bits: number;
  readonly keep: bigint;
  readonly opposite: bigint;
  readonly each: bigint;
  readonly nonePresent: bigint;
  readonly noneAbsent: bigint;
  readonly signs: 1 | 2;
}

/** How a `set` protocol draws. */
export interface Subset {
  readonly keys: number;
  readonly padding: number;
  readonly bits: number;
  readonly accept: bigint;
  readonly width: number;
  readonly signs: 1 | 2;
  readonly symbols: number;
}

export interface TableFacts {
  protocol: Protocol;
  epsilon: Rational;
  keys: number;
  padding?: number;
  rounds?: number;
  bits?: number;
}

export declare function tableFor(facts: TableFacts): Table;
export declare function certifiedEpsilon(facts: TableFacts): Rational;
/** A rational as a plain decimal of at most 40 places where it is one, otherwise as a ratio. */
export declare function decimalText(number: Rational): string;

/** The terms of a study: everything a device has to know. */
export declare class Terms {
  private constructor();
  /** Reads the canonical JSON of a study, letter for letter; throws `ClientError`. */
  static fromJson(text: string, options?: { hash?: Hash }): Terms;
  readonly json: string;
  /** SHA-256 of the canonical JSON, in hex. */
  readonly taskId: string;
  /** Its first 16 bytes, which travel with each report. */
  readonly shortId: Uint8Array;
  readonly keys: readonly (string | number | bigint)[];
  readonly epsilon: Rational;
  /** The epsilon one participation really has, from the table's own entries, rounded up. */
  readonly certified: Rational;
  readonly protocol: Protocol;
  readonly range: readonly [Rational, Rational];
  readonly answers: "memoised" | "fresh";
  readonly indexMode: "assigned" | "chosen";
  readonly indexCommitment: string | null;
  readonly paddingLength: number;
  readonly rounds: number;
  readonly tableBits: number;
  readonly minBatch: number | bigint;
  readonly notBefore: string | null;
  readonly notAfter: string | null;
  readonly sampled: boolean;
  readonly joint: boolean;
  readonly perKey: boolean;
  readonly subsets: boolean;
  readonly valueless: boolean;
  readonly signs: 1 | 2;
  readonly table: Table;
  readonly subset: Subset | null;
  readonly laterTable: readonly [bigint, bigint] | null;
  placeOf(key: unknown): number | undefined;
}

/** Where a book lies: one text, changed in one durable step. A step may run again; text null means unchanged. */
export interface Storage {
  change<T>(step: (text: string | null) => { text: string | null; result: T }): Promise<T>;
  persist?(): Promise<boolean>;
}

export declare function memoryStorage(): Storage;
export declare function indexedDbStorage(name?: string): Storage;
export declare function plainStorage(place: {
  read(): Promise<string | null | undefined>;
  write(text: string): Promise<unknown>;
}): Storage;

/** A device's own book; one per person, shared by all studies. */
export declare class Diary {
  constructor(storage: Storage, options?: { random?: Random });
  static inMemory(options?: { random?: Random }): Diary;
  static inBrowser(options?: { random?: Random }): Diary;
  /** Everything booked so far, over all studies. */
  spent(): Promise<Rational>;
  /** Asks the browser to keep the storage when space runs out. */
  persist(): Promise<boolean>;
  change<T>(step: (book: any) => T): Promise<T>;
}

export interface ClientOptions {
  /** What the server issued at enrolment; left out, the diary's, or a new one. */
  credential?: Uint8Array;
  /** The server's revealed seed, for a study with a commitment. */
  seed?: Uint8Array;
  diary?: Diary;
  /** What this device is willing to spend, over all studies in its diary. */
  maxEpsilon?: number | string;
  /** The first answer is given for ever. */
  static?: boolean;
  /** Numbers outside the range are moved to its end. */
  clip?: boolean;
  random?: Random;
  hash?: Hash;
}

/** One person's device in one study. */
export declare class Client {
  private constructor();
  static open(terms: Terms, options?: ClientOptions): Promise<Client>;
  readonly terms: Terms;
  readonly index: number | null;
  readonly diary: Diary;
  /** The bytes to send; booked and durable before they are handed over. `today` is YYYY-MM-DD, for tests. */
  report(pairs: Pairs, options?: { round?: number; means?: Pairs; today?: string }): Promise<Uint8Array>;
  /** What `report` would silently leave out; never to be sent anywhere. */
  check(pairs: Pairs): string[];
}

export interface Sent {
  accepted: number;
  duplicate: number;
  rejected: { round: number; reason: string }[];
}

export interface UploaderOptions {
  fetch?: typeof fetch;
  wait?: (milliseconds: number) => Promise<unknown>;
  random?: Random;
  hash?: Hash;
  attempts?: number;
  firstPause?: number;
  longestPause?: number;
  timeout?: number;
}

export interface RoundState {
  state: "waiting" | "open" | "closed" | "frozen" | "purged";
  means: ReadonlyMap<string | number | bigint, number> | null;
  seed: Uint8Array | null;
}

/** The way to a collector somewhere on the network. */
export declare class Uploader {
  constructor(server: string, options?: UploaderOptions);
  study(task: string): Promise<Terms>;
  round(terms: Terms, round: number): Promise<RoundState>;
  enrol(terms: Terms, options: { ticket: string; diary: Diary }): Promise<Uint8Array>;
  send(client: Client): Promise<Sent>;
}

export interface Report {
  round: number;
  reportId: Uint8Array;
  index: number | null;
  symbol: number | Uint8Array;
}

export declare function pack(terms: Terms, report: Report): Uint8Array;
export declare function unpack(terms: Terms, content: Uint8Array): Report;
export declare function toJson(terms: Terms, content: Uint8Array): string;
export declare function reportSize(terms: Terms): number;
export declare function reportId(terms: Terms, credential: Uint8Array, hash?: Hash): Uint8Array;
export declare function assignedIndex(terms: Terms, identity: Uint8Array, seed?: Uint8Array, hash?: Hash): number;
export declare function credentialOf(terms: Terms, secret: Uint8Array, nonce: Uint8Array, hash?: Hash): Uint8Array;

/** Randomized response over public categories. */
export declare class RandomizedResponse {
  constructor(options: { categories: readonly string[]; epsilon: number | string; random?: Random });
  readonly categories: readonly string[];
  readonly epsilon: Rational;
  readonly each: bigint;
  readonly keep: bigint;
  answer(category: string): number;
  answerOf(own: number, word: bigint): number;
}

/** Harmony: a number in [-1, 1] as one sign. */
export declare class Harmony {
  constructor(options: { epsilon: number | string; random?: Random });
  readonly epsilon: Rational;
  readonly keep: bigint;
  answer(value: unknown): 1 | 2;
  answerOf(sign: 1 | 2, word: bigint): 1 | 2;
}

export declare class ClientError extends Error {}
export declare class StudyRefused extends ClientError {}
export declare class BudgetRefused extends ClientError {}
export declare class DiaryError extends ClientError {}
export declare class ReportError extends ClientError {}
export declare class UploadError extends ClientError {
  readonly code: string;
  readonly status: number;
}
