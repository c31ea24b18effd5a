package dev.tributary.sdk

import java.io.File
import java.io.IOException
import java.net.ServerSocket
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import java.util.concurrent.TimeUnit
import java.net.http.HttpRequest as JavaRequest

/** Returns the path of the binary: TRIBUTARY_BIN or the debug build. */
private fun binary(): String {
    val path = System.getenv("TRIBUTARY_BIN") ?: "../../target/debug/tributary"
    if (!File(path).canExecute()) throw IOException("no binary at $path; run cargo build")
    return path
}

/** An app on the server. */
class App(val id: String, val key: String)

/** The real server in a temporary folder. */
class Server private constructor(private val process: Process, private val folder: File, val url: String, private val key: String) {
    /** HttpURLConnection cannot send PATCH, so the tests use Java's newer client. */
    private val client = Transport { request ->
        val body = request.body?.let { BodyPublishers.ofString(it) } ?: BodyPublishers.noBody()
        val builder = JavaRequest.newBuilder(URI(request.url)).method(request.method, body)
        request.headers.forEach { builder.header(it.key, it.value) }
        val response = HttpClient.newHttpClient().send(builder.build(), BodyHandlers.ofString())
        HttpResponse(response.statusCode(), emptyMap(), response.body())
    }

    fun stop() {
        process.destroyForcibly().waitFor()
        folder.deleteRecursively()
    }

    /** Calls the REST API and returns the response. */
    fun rest(method: String, path: String, body: Map<String, Any?>? = null): Map<String, Any?> {
        val headers = mapOf("Authorization" to "Bearer $key", "Content-Type" to "application/json")
        val request = HttpRequest(method, "$url/api/v1$path", headers, body?.let { Json.write(it) })
        val response = client.send(request)
        if (response.status >= 300) throw IOException("$method $path: ${response.status} ${response.body}")
        return Json.readObject(response.body)!!
    }

    /** Creates an app, so that tests do not see each other's events. */
    fun app(vararg settings: Pair<String, Any?>): App {
        val made = rest("POST", "/apps", mapOf("name" to "SDK", *settings))["data"].asObject()!!
        val id = made["id"] as String
        val sdk = rest("GET", "/apps/$id")["data"].asObject()!!["sdk"].asObject()!!
        return App(id, sdk["liveKey"] as String)
    }

    /** Returns an app's events in order, without the install that the server records. */
    fun events(app: App): List<Map<String, Any?>> {
        val events = ArrayList<Map<String, Any?>>()
        var cursor: String? = null
        do {
            val page = rest("GET", "/apps/${app.id}/events?limit=500" + (cursor?.let { "&cursor=$it" } ?: ""))
            (page["data"] as List<*>).forEach { events.add(it.asObject()!!) }
            cursor = page["meta"].asObject()!!["cursor"] as String?
        } while (cursor != null)
        return events.reversed().filter { it["name"] != "install" }
    }

    companion object {
        fun start(): Server {
            val folder = File.createTempFile("tributary-sdk-", "").apply { delete(); mkdirs() }
            val port = ServerSocket(0).use { it.localPort }
            val url = "http://127.0.0.1:$port"
            val log = File(folder, "log")
            val process = command(folder, port, "serve").redirectErrorStream(true).redirectOutput(log).start()
            // The server must not outlive the tests.
            Runtime.getRuntime().addShutdownHook(Thread { process.destroyForcibly() })
            try {
                until("the server", 30_000) {
                    if (!process.isAlive) throw IOException("the server did not start: ${log.readText().takeLast(2_000)}")
                    val probe = HttpRequest("GET", "$url/readyz", emptyMap(), null)
                    runCatching { UrlTransport().send(probe).status }.getOrDefault(0) == 200
                }
                val key = command(folder, port, "admin", "key", "create", "--permission", "full").start()
                val text = key.inputStream.readBytes().toString(Charsets.UTF_8).trim()
                key.waitFor(30, TimeUnit.SECONDS)
                return Server(process, folder, url, text)
            } catch (error: Throwable) {
                process.destroyForcibly()
                throw error
            }
        }

        private fun command(folder: File, port: Int, vararg arguments: String): ProcessBuilder {
            val builder = ProcessBuilder(binary(), *arguments)
            val environment = builder.environment()
            // The caller's settings must not affect the server under test.
            environment.keys.removeAll { it.startsWith("TRIBUTARY_") }
            environment["TRIBUTARY_LISTEN"] = "127.0.0.1:$port"
            environment["TRIBUTARY_DATA_DIR"] = File(folder, "data").path
            environment["TRIBUTARY_RATES__URL"] = ""
            environment["TRIBUTARY_RATES__SECOND_URL"] = ""
            return builder
        }
    }
}
