package dev.tributary.sdk

/** Runs the tests: all, or the suites that are named. */
fun main(arguments: Array<String>) {
    val wanted = arguments.toList()
    val server = if (wanted.isEmpty() || "server" in wanted) Server.start() else null
    val suites = listOf(
        tableTests(), jsonTests(), queueTests(), answerTests(), enrolmentTests(), privacyTests(), storageTests(),
        interleavingTests(),
    )
    runSuites(suites + listOfNotNull(server?.let { serverTests(it) }), wanted) { server?.stop() }
}
