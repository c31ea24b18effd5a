package dev.tributary.sdk

import java.io.File

/**
 * A process to be killed, or one of two that share a storage: it tracks events, prints its progress, and waits.
 * Arguments: folder, URL, key, prefix, network mode, number of events.
 */
object Victim {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val (folder, url, key, prefix, mode) = arguments
        val network = Network(UrlTransport())
        network.mode = Mode.valueOf(mode)
        // Register the device first; only the responses to events are lost.
        if (network.mode == Mode.LOST) network.script.add(Mode.FINE)
        val sdk = TributaryClient()
        val options = TributaryOptions(key, url).apply { flushDelayMs = 0; logLevel = LogLevel.NONE }
        sdk.configure(options, realEnvironment(FileStorage(File(folder)), network))
        val futures = (1..arguments[5].toInt()).map { sdk.trackEvent("$prefix$it", mapOf("number" to it)) }
        futures.forEach { it.get() }
        println("tracked")
        if (network.mode == Mode.FINE) {
            until("an empty queue") { sdk.flush().get() && sdk.getQueuedEvents().get() == 0 }
            println("empty")
            return
        }
        while (true) {
            // A second attempt means that the first request arrived and its response was lost.
            if (network.count("events") > 1) println("sent")
            Thread.sleep(5)
        }
    }

    /** Starts the process. */
    fun start(folder: File, url: String, key: String, prefix: String, mode: Mode, count: Int): Process {
        val java = File(System.getProperty("java.home"), "bin/java").path
        val classPath = System.getProperty("java.class.path")
        val command = listOf(java, "-XX:TieredStopAtLevel=1", "-cp", classPath, "dev.tributary.sdk.Victim")
        val arguments = listOf(folder.path, url, key, prefix, mode.name, "$count")
        return ProcessBuilder(command + arguments).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    }

    /** Waits until a process prints a word. */
    fun await(process: Process, word: String) {
        val reader = process.inputStream.bufferedReader()
        do {
            val line = reader.readLine() ?: throw AssertionError("the process ended before it printed $word")
        } while (line != word)
    }
}
