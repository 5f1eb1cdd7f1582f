// The integer tables of pckv-ue, pckv-grr and set, and the step from a state and a fresh word to a symbol.
import Foundation

/// A rule about public facts was broken; nothing depends on what a person holds.
public struct ClientError: Error {
    public let message: String
}

func must(_ holds: Bool, _ message: String) throws {
    if !holds { throw ClientError(message: message) }
}

/// One channel in whole numbers out of 2^bits.
struct Table {
    let bits: Int
    let keep, opposite, each, nonePresent, noneAbsent: Natural
}

/// How `set` draws: `width` of all symbols, kept if they meet what is held or a word is below `accept`.
struct Subset {
    let keys, padding, bits: Int
    let accept: Natural
    let width: Int
    var symbols: Int { 2 * keys + padding }

    /// The held sign alone, the other alone, and one given sign of a key not held.
    var law: (keep: Ratio, opposite: Ratio, each: Ratio) {
        let less = Ratio(1) - Ratio(accept, Natural(1) << bits)
        func but(_ chance: Ratio) -> Ratio { Ratio(1) - chance * less }
        let other = misses(padding - 1, symbols - 1 - width, symbols - 2)
        let absent = other * Ratio(symbols - width - padding) / Ratio(symbols - 1 - padding)
        let scale = Ratio(width) * Ratio(symbols - width) / (Ratio(symbols) * Ratio(symbols - 1))
            / but(misses(padding, symbols - width, symbols))
        return (scale, scale * but(other), scale * but(absent))
    }

    /// S: plus of key k is 2k, minus 2k + 1; dummies fill it up.
    func own(_ held: [(key: Int, state: Int)]) -> Set<Int> {
        let pairs = held.map { 2 * $0.key + $0.state - 1 }
        return Set(pairs + (0..<(padding - pairs.count)).map { 2 * keys + $0 })
    }

    func isKept(own: Set<Int>, drawn: [Int], word: UInt64) -> Bool {
        !own.isDisjoint(with: drawn) || Natural(word) < accept
    }

    /// What a subset says of each key: 1 plus, 2 minus, 0 nothing or both.
    func said(_ drawn: [Int]) -> [Int] {
        var found = [Int](repeating: 0, count: keys)
        for symbol in drawn where symbol < 2 * keys { found[symbol / 2] += 1 + symbol % 2 }
        return found.map { $0 % 3 }
    }

    /// n times the variances of frequency and of frequency times mean, of a key that nobody holds; together.
    fileprivate var noise: Ratio {
        let (keep, opposite, each) = law
        let said = Ratio(2) * each
        guard said < keep + opposite else { return Ratio(Natural(1_000_000_000_000_000) * Natural(1_000_000_000_000_000)) }
        let gap = keep + opposite - said
        let apart = keep - opposite
        return said * (Ratio(1) - said) / (gap * gap) + said / (apart * apart)
    }
}

private func misses(_ held: Int, _ rest: Int, _ all: Int) -> Ratio {
    (0..<held).reduce(Ratio(1)) { chance, i in chance * Ratio(max(rest - i, 0)) / Ratio(all - i) }
}

func growth(of epsilon: Ratio) -> Ratio { expDown(min(epsilon, Ratio(100))) }

func subset(epsilon: Ratio, keys: Int, padding: Int, bits: Int) throws -> Subset {
    try must(padding <= 256, "padding_length must be at most 256 for 'set'; got \(padding).")
    let accept = (Ratio(Natural(1) << bits) / growth(of: epsilon)).ceil
    func of(_ width: Int) -> Subset { Subset(keys: keys, padding: padding, bits: bits, accept: accept, width: width) }
    var (low, high) = (1, keys)
    while low < high {
        let middle = (low + high) / 2
        if of(middle).noise <= of(middle + 1).noise { high = middle } else { low = middle + 1 }
    }
    return of(low)
}

/// The table of pckv-ue or pckv-grr; refused where its largest ratio would exceed e^epsilon.
func table(protocol name: String, epsilon: Ratio, keys: Int, padding: Int, bits: Int) throws -> Table {
    let size = Natural(1) << bits
    let most = growth(of: epsilon)
    let (found, worst) = name == "pckv-ue" ? unary(size, bits, most) : joint(size, bits, most, keys, padding)
    try must(found.keep > found.opposite && found.keep > found.each && worst <= most, "epsilon must be large enough; it is not.")
    return found
}

private func unary(_ size: Natural, _ bits: Int, _ growth: Ratio) -> (Table, Ratio) {
    let half = size >> 1
    let keep = (Ratio(half) * growth / (growth + Ratio(1))).floor
    let each = (Ratio(size) / (growth + Ratio(3))).ceil
    let absent = size - each - each
    let table = Table(bits: bits, keep: keep, opposite: half - keep, each: each, nonePresent: half, noneAbsent: absent)
    let likelihoods = [Ratio(keep, each), Ratio(half - keep, each), Ratio(half, absent), Ratio(1)]
    return (table, likelihoods.max()! / likelihoods.min()!)
}

private func joint(_ size: Natural, _ bits: Int, _ growth: Ratio, _ keys: Int, _ padding: Int) -> (Table, Ratio) {
    let each = (Ratio(size) / (Ratio(padding) * (growth - Ratio(1)) + Ratio(2 * (keys + padding)))).ceil
    let others = Natural(UInt64(2 * keys - 1 + 2 * padding)) * each
    let (nothing, signed) = (Natural(UInt64(2 * padding)) * each, Natural(UInt64(2 * keys)) * each)
    guard others < size, signed < size else { // no trace is left: refused
        return (Table(bits: bits, keep: each, opposite: each, each: each, nonePresent: nothing, noneAbsent: nothing), growth)
    }
    let keep = size - others
    let table = Table(bits: bits, keep: keep, opposite: each, each: each, nonePresent: nothing, noneAbsent: size - signed)
    let sign = Ratio(1) + (Ratio(keep, each) - Ratio(1)) / Ratio(padding)
    return (table, max(sign, Ratio(table.noneAbsent, nothing)))
}

/// A symbol about one key: 0 nothing, 1 plus, 2 minus.
func ternarySymbol(_ table: Table, state: Int, word: Natural) -> Int {
    if state == 0 { return word < table.each ? 1 : word < table.each + table.each ? 2 : 0 }
    if word < table.keep { return state }
    return word < table.keep + table.opposite ? 3 - state : 0
}

/// One symbol over all keys: 0 nothing, 1 + 2k plus, 2 + 2k minus; nil for a dummy.
func jointSymbol(_ table: Table, picked: (key: Int, state: Int)?, word: Natural) -> Int {
    guard let picked else {
        return word < table.noneAbsent ? 0 : 1 + Int((word - table.noneAbsent).divided(by: table.each).quotient.low)
    }
    let own = picked.key * 2 + picked.state
    if word < table.keep { return own }
    if word < table.keep + table.nonePresent { return 0 }
    let other = 1 + Int((word - table.keep - table.nonePresent).divided(by: table.each).quotient.low)
    return other < own ? other : other + 1
}

/// One symbol per key; `words` holds one fresh word of `bits` bits per key.
func unarySymbols(_ table: Table, picked: (key: Int, state: Int)?, words: [UInt64]) -> [Int] {
    words.enumerated().map { key, word in
        ternarySymbol(table, state: picked?.key == key ? picked!.state : 0, word: Natural(word))
    }
}
