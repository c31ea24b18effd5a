package dev.tributary.sdk

/** Runs all tests, or the suites that are named. */
fun main(arguments: Array<String>) {
    val wanted = arguments.toList()
    val server = if (wanted.isEmpty() || "server" in wanted) Server.start() else null
    val suites = coreSuites() + androidTests() + apiTests()
    runSuites(suites + listOfNotNull(server?.let { serverTests(it) }), wanted) { server?.stop() }
}
