// The golden vectors, checked one by one: copy wire-vectors.json beside this file, or set SABUN_VECTORS to its path.
import Foundation
import XCTest

@testable import SabunClient

final class VectorTests: XCTestCase {
    private var vectors: [String: Any] = [:]

    override func setUpWithError() throws {
        let beside = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("wire-vectors.json").path
        let path = ProcessInfo.processInfo.environment["SABUN_VECTORS"] ?? beside
        vectors = try XCTUnwrap(JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path))) as? [String: Any])
    }

    private func list(_ name: String) -> [[String: Any]] { vectors[name] as? [[String: Any]] ?? [] }
    private func natural(_ text: Any?) -> Natural { Natural(decimal: Substring(text as! String))! }
    private func entries(_ table: Table) -> [Natural] {
        [table.keep, table.opposite, table.each, table.nonePresent, table.noneAbsent]
    }

    func testTables() throws {
        for facts in list("tables") {
            let name = facts["protocol"] as! String
            guard ["pckv-ue", "pckv-grr", "set"].contains(name) else { continue }
            let epsilon = Ratio(text: facts["epsilon"] as! String)!
            let (keys, padding, bits) = (facts["keys"] as! Int, facts["padding"] as! Int, facts["bits"] as! Int)
            if name == "set" {
                let found = try subset(epsilon: epsilon, keys: keys, padding: padding, bits: bits)
                XCTAssertEqual(found.accept, natural(facts["accept"]))
                XCTAssertEqual(found.width, facts["width"] as! Int)
            } else if let expected = facts["table"] as? [String] {
                let found = try table(protocol: name, epsilon: epsilon, keys: keys, padding: padding, bits: bits)
                XCTAssertEqual(entries(found), expected.map(natural))
            } else {
                XCTAssertThrowsError(try table(protocol: name, epsilon: epsilon, keys: keys, padding: padding, bits: bits))
            }
        }
    }

    func testStudies() throws {
        for study in list("studies") where ["pckv-ue", "pckv-grr", "set"].contains(study["name"] as! String) {
            let terms = try Terms(json: study["terms"] as! String)
            XCTAssertEqual(terms.taskId, study["task_id"] as! String)
            let identity = reportId(terms, credential: Data(0..<16))
            XCTAssertEqual(identity.map { String(format: "%02x", $0) }.joined(), study["report_id"] as! String)
            for given in study["symbols"] as! [[String: Any]] {
                let word = natural(given["word"])
                if let subset = terms.subset {
                    let held = (given["held"] as! [[Int]]).map { (key: $0[0], state: $0[1]) }
                    let drawn = given["drawn"] as! [Int]
                    XCTAssertEqual(subset.own(held).sorted(), given["own"] as! [Int])
                    XCTAssertEqual(subset.isKept(own: subset.own(held), drawn: drawn, word: word.low), given["kept"] as! Bool)
                    XCTAssertEqual(subset.said(drawn), given["symbol"] as! [Int])
                } else {
                    let picked = (given["picked"] as? [Int]).map { (key: $0[0], state: $0[1]) }
                    XCTAssertEqual(jointSymbol(terms.table!, picked: picked, word: word), given["symbol"] as! Int)
                }
            }
        }
    }

    func testDoublesAndThresholds() throws {
        for pair in vectors["doubles"] as! [[String]] {
            let double = Double(bitPattern: UInt64(pair[1], radix: 16)!)
            XCTAssertEqual(Ratio(text: pair[0])!.double.bitPattern, double.bitPattern)
            XCTAssertEqual(Ratio(double).double, double)
        }
        for given in list("thresholds") {
            let ends = (given["range"] as! [String]).map { Ratio(text: $0)! }
            for row in given["cases"] as! [[Any]] {
                let value = Double(bitPattern: UInt64(row[0] as! String, radix: 16)!)
                for (place, clip) in [(1, false), (2, true)] {
                    let found = threshold(value, in: (ends[0], ends[1]), clip: clip)
                    XCTAssertEqual(found.map(String.init), row[place] as? String)
                }
            }
        }
    }

    func testUnary() throws {
        for given in list("unary") {
            let (keys, bits) = (given["keys"] as! Int, given["bits"] as! Int)
            let made = try table(protocol: "pckv-ue", epsilon: Ratio(text: "1/2")!, keys: keys, padding: 2, bits: bits)
            let text = given["words"] as! String
            let width = text.count / keys
            let words = (0..<keys).map { key in
                UInt64(text.dropFirst(key * width).prefix(width), radix: 16)!
            }
            let picked = (given["picked"] as? [Int]).map { (key: $0[0], state: $0[1]) }
            XCTAssertEqual(unarySymbols(made, picked: picked, words: words), given["symbols"] as! [Int])
        }
    }
}
