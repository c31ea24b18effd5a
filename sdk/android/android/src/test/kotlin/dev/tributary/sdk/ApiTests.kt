package dev.tributary.sdk

import java.io.DataInputStream
import java.io.File

/** Returns the members of other classes that a class file uses, as `class.member type`, and the classes themselves. */
private fun references(file: File): List<String> = DataInputStream(file.inputStream().buffered()).use { input ->
    input.skipBytes(8)
    val count = input.readUnsignedShort()
    val texts = HashMap<Int, String>()
    val pairs = HashMap<Int, Pair<Int, Int>>()
    val tags = HashMap<Int, Int>()
    var index = 1
    while (index < count) {
        val tag = input.readUnsignedByte()
        tags[index] = tag
        when (tag) {
            1 -> texts[index] = input.readUTF()
            7, 8, 16, 19, 20 -> pairs[index] = input.readUnsignedShort() to 0
            9, 10, 11, 12, 17, 18 -> pairs[index] = input.readUnsignedShort() to input.readUnsignedShort()
            15 -> input.skipBytes(3)
            3, 4 -> input.skipBytes(4)
            // These take two numbers.
            5, 6 -> input.skipBytes(8).also { index++ }
        }
        index++
    }
    fun className(at: Int) = texts[pairs[at]!!.first]!!
    val members = pairs.filterKeys { tags[it] in 9..11 }.values.map { (owner, member) ->
        val (name, type) = pairs[member]!!
        "${className(owner)}.${texts[name]} ${texts[type]}"
    }
    val classes = pairs.keys.filter { tags[it] == 7 }.map { className(it) }
    (members + classes).filterNot { it.startsWith("[") }
}

/** Which classes and methods the published code uses. */
fun apiTests() = Suite("api").apply {
    test("only classes and methods that Android 5.0 (API 21) has: api21.txt lists them") {
        val allowed = File(System.getProperty("api")).readLines().filter { it.isNotBlank() && !it.startsWith("#") }.toSet()
        val folders = System.getProperty("classes").split(':').map { File(it, "dev/tributary/sdk") }
        val files = folders.flatMap { folder -> folder.walk().filter { it.extension == "class" } }
        assertTrue(files.size > 50, "class files")
        val used = files.flatMap { references(it) }.filter { it.startsWith("java") || it.startsWith("android/") }.toSortedSet()
        (used - allowed).forEach { println("new: $it") }
        assertEquals(emptyList<String>(), (used - allowed).toList(), "not in api21.txt; check that API 21 has it, then add it")
        assertEquals(emptyList<String>(), (allowed - used).toList(), "in api21.txt, but not used")
    }
    test("the core uses nothing but Java and Kotlin's standard library") {
        val core = File(System.getProperty("classes").substringBefore(':'))
        val foreign = core.walk().filter { it.extension == "class" }.flatMap { references(it) }
            .filterNot { it.startsWith("java/") || it.startsWith("kotlin/") || it.startsWith("dev/tributary/sdk/") }.toSortedSet()
        assertEquals(emptyList<String>(), foreign.toList())
    }
}
