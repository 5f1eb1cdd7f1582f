// The device: a person's pairs go in, bytes come out, nothing else leaves.
import CryptoKit
import Foundation

/// A study as a device knows it, from the text the server shows; a text that was reformatted has another id.
public struct Terms {
    public let keys: [String]
    public let protocolName: String
    public let taskId: String
    let shortId: Data
    let epsilon: Ratio
    let range: (low: Ratio, high: Ratio)
    let padding, bits: Int
    let rounds: UInt32
    let fresh: Bool
    let notBefore, notAfter: String?
    let table: Table?
    let subset: Subset?

    public init(json: String) throws {
        let text = json.trimmingCharacters(in: .whitespacesAndNewlines)
        guard let record = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any],
            record["version"] as? Int == 1, let keys = record["keys"] as? [String], !keys.isEmpty,
            Set(keys).count == keys.count, let name = record["protocol"] as? String,
            let epsilon = (record["epsilon"] as? String).flatMap(Ratio.init(text:)), epsilon > Ratio(0),
            let ends = (record["value_range"] as? [String])?.compactMap(Ratio.init(text:)), ends.count == 2,
            ends[0].double < ends[1].double, let padding = record["padding_length"] as? Int, (1...keys.count) ~= padding,
            let bits = record["table_bits"] as? Int, (16...64) ~= bits, let rounds = record["rounds"] as? UInt32, rounds > 0
        else { throw ClientError(message: "a study must hold terms as version 1 writes them; it does not.") }
        try must(["pckv-ue", "pckv-grr", "set"].contains(name), "protocol must be pckv-ue, pckv-grr or set; got another.")
        let digest = SHA256.hash(data: Data(text.utf8))
        self.keys = keys
        protocolName = name
        taskId = digest.map { String(format: "%02x", $0) }.joined()
        shortId = Data(digest.prefix(16))
        self.epsilon = epsilon
        range = (ends[0], ends[1])
        (self.padding, self.bits, self.rounds) = (padding, bits, rounds)
        fresh = record["answers"] as? String == "fresh"
        (notBefore, notAfter) = (record["not_before"] as? String, record["not_after"] as? String)
        let sets = name == "set"
        subset = try sets ? SabunClient.subset(epsilon: epsilon, keys: keys.count, padding: padding, bits: bits) : nil
        table = try sets ? nil : SabunClient.table(protocol: name, epsilon: epsilon, keys: keys.count, padding: padding, bits: bits)
    }

    /// Bytes of a report: the same for every person of a study.
    public var reportSize: Int { 37 + (protocolName == "pckv-grr" ? 4 : (keys.count + 3) / 4) }
}

/// Where the book lies. `change` reads it, hands it to `step`, and keeps what `step` made of it, durably, before it returns; one
/// step at a time. On iOS: a file with complete protection, written atomically, kept out of backups.
public protocol Storage {
    func change<T>(_ step: (inout Book) throws -> T) throws -> T
}

/// What a device remembers; whoever can read it can find out what its person holds.
public struct Book: Codable {
    var secret = Data((0..<32).map { _ in UInt8.random(in: .min ... .max) })
    /// By study: what was charged, as texts of the nominal epsilon.
    var charges: [String: [String]] = [:]
    var credentials: [String: Data] = [:]
    var memory: [String: [String: Data]] = [:]
    var sent: [String: [UInt32: Data]] = [:]
    public init() {}
}

/// One person's device in one study; asking again in the same round gives the identical bytes.
public final class Client {
    private let terms: Terms
    private let storage: Storage
    private let limit: Ratio?
    private let clip: Bool
    private let identity: Data

    public init(terms: Terms, storage: Storage, credential: Data? = nil, maxEpsilon: String? = nil, clip: Bool = false) throws {
        limit = try maxEpsilon.map {
            guard let limit = Ratio(text: $0) else { throw ClientError(message: "maxEpsilon must be a finite number.") }
            return limit
        }
        try must(limit.map { terms.epsilon <= $0 } ?? true, "the study asks for more than this device accepts.")
        try must((credential?.count ?? 16) >= 16, "credential must have at least 16 bytes.")
        (self.terms, self.storage, self.clip) = (terms, storage, clip)
        let fresh = credential ?? Data((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        let own: Data = try storage.change { book in
            if book.credentials[terms.taskId] == nil { book.credentials[terms.taskId] = fresh }
            return book.credentials[terms.taskId]!
        }
        try must(credential == nil || credential == own, "credential must be the one this diary enrolled with; got another.")
        identity = reportId(terms, credential: own)
    }

    /// The bytes to send; booked and kept before they are handed over. What `pairs` holds never throws an error.
    public func report(_ pairs: [String: Double], round: UInt32 = 0, today: String = isoToday()) throws -> Data {
        try must(round < terms.rounds, "round must be below \(terms.rounds).")
        let open = (terms.notBefore.map { $0 <= today } ?? true) && (terms.notAfter.map { today <= $0 } ?? true)
        try must(open, "the study is not open today.")
        let held = thresholds(pairs)
        return try storage.change { book in
            let task = terms.taskId
            if let before = book.sent[task]?[round] { return before }
            // The nominal epsilon is booked: never less than the certified one.
            let spent = book.charges.values.joined().compactMap(Ratio.init(text:)).reduce(terms.epsilon, +)
            try must(limit.map { spent <= $0 } ?? true, "this device's budget is spent. Nothing was drawn, nothing was booked.")
            book.charges[task, default: []].append(terms.epsilonText)
            let payload = answer(&book, held)
            let report = Data([1]) + terms.shortId + bigEndian(round) + identity + payload
            book.sent[task, default: [:]][round] = report
            return report
        }
    }

    private func answer(_ book: inout Book, _ held: [(key: Int, threshold: UInt64)]) -> Data {
        if terms.fresh {
            return draw(picked(held).map { ($0.key, UInt64.random(in: 0..<(1 << 53)) < $0.threshold ? 1 : 2) })
        }
        let secret = SymmetricKey(data: book.secret)
        let states = held.map { (key: $0.key, state: signWord(secret, $0.key) < $0.threshold ? 1 : 2) }
        let message = states.reduce(Data("state\0".utf8)) { $0 + bigEndian(UInt32($1.key)) + Data([UInt8($1.state)]) }
        let name = Data(HMAC<SHA256>.authenticationCode(for: message, using: secret)).base64EncodedString()
        if let before = book.memory[terms.taskId]?[name] { return before }
        let payload = draw(picked(states))
        book.memory[terms.taskId, default: [:]][name] = payload
        return payload
    }

    /// The bits that turn a value into a sign: the same for ever, so that a small change rarely shows.
    private func signWord(_ secret: SymmetricKey, _ key: Int) -> UInt64 {
        let message = Data("sign\0\(terms.taskId)".utf8) + bigEndian(UInt32(key))
        let digest = HMAC<SHA256>.authenticationCode(for: message, using: secret)
        return digest.prefix(8).reduce(UInt64(0)) { ($0 << 8) | UInt64($1) } >> 11
    }

    private func thresholds(_ pairs: [String: Double]) -> [(key: Int, threshold: UInt64)] {
        terms.keys.enumerated().compactMap { place, key in
            guard let value = pairs[key], let found = threshold(value, in: terms.range, clip: clip) else { return nil }
            return (place, found)
        }
    }

    private func picked<T>(_ own: [T]) -> [T] {
        guard terms.subset != nil else {
            let place = Int.random(in: 0..<max(own.count, terms.padding))
            return place < own.count ? [own[place]] : []
        }
        return own.count <= terms.padding ? own : Array(own.shuffled().prefix(terms.padding))
    }

    private func draw(_ about: [(key: Int, state: Int)]) -> Data {
        let mask = terms.bits == 64 ? UInt64.max : (1 << UInt64(terms.bits)) - 1
        func word() -> UInt64 { UInt64.random(in: .min ... .max) & mask }
        if let subset = terms.subset {
            let own = subset.own(about)
            while true {
                let drawn = Array((0..<subset.symbols).shuffled().prefix(subset.width))
                if subset.isKept(own: own, drawn: drawn, word: word()) { return packed(subset.said(drawn)) }
            }
        }
        if terms.protocolName == "pckv-ue" {
            return packed(unarySymbols(terms.table!, picked: about.first, words: terms.keys.map { _ in word() }))
        }
        return bigEndian(UInt32(jointSymbol(terms.table!, picked: about.first, word: Natural(word()))))
    }
}

/// Where a double stands in a range, out of 2^53: its exact ratio, never its text; nil when it is outside and not clipped.
func threshold(_ value: Double, in range: (low: Ratio, high: Ratio), clip: Bool) -> UInt64? {
    let (least, most) = (range.low.double, range.high.double)
    var number = value
    if !(number >= least && number <= most) {
        guard clip, !number.isNaN else { return nil }
        number = number < least ? least : most
    }
    let place = (Ratio(number) - range.low) / (range.high - range.low)
    guard !place.negative else { return 0 }
    return min((place * Ratio(Natural(1) << 53)).floor, Natural(1) << 53).low
}

/// 16 bytes that stand for a credential within one study.
func reportId(_ terms: Terms, credential: Data) -> Data {
    Data(SHA256.hash(data: Data("sabun report id\0".utf8) + terms.shortId + credential).prefix(16))
}

/// The credential of an enrolment, of a number each side drew before it knew the other's.
public func credentialOf(_ terms: Terms, secret: Data, nonce: Data) -> Data {
    Data(SHA256.hash(data: Data("sabun credential\0".utf8) + terms.shortId + secret + nonce))
}

func bigEndian(_ number: UInt32) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

/// Two bits per key, key 0 in the highest bits of the first byte.
func packed(_ symbols: [Int]) -> Data {
    var bytes = Data(count: (symbols.count + 3) / 4)
    for (key, symbol) in symbols.enumerated() { bytes[key / 4] |= UInt8(symbol << (6 - 2 * (key % 4))) }
    return bytes
}

/// The date of today, UTC, as YYYY-MM-DD.
public func isoToday() -> String { String(ISO8601DateFormatter().string(from: Date()).prefix(10)) }

extension Terms {
    var epsilonText: String { "\(decimal(epsilon.n))/\(decimal(epsilon.d))" }

    private func decimal(_ number: Natural) -> String {
        var (rest, text) = (number, "")
        repeat {
            let (quotient, digit) = rest.divided(by: Natural(10))
            text = "\(digit.low)" + text
            rest = quotient
        } while !rest.isZero
        return text
    }
}
