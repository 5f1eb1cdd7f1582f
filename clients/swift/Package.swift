// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "SabunClient",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "SabunClient", targets: ["SabunClient"])],
    targets: [
        .target(name: "SabunClient"),
        .testTarget(name: "SabunClientTests", dependencies: ["SabunClient"]),
    ]
)
