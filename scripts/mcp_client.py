"""Uses a server's MCP endpoint with the protocol's official client. See scripts/mcp.sh.

usage: mcp_client.py SERVER BINARY, with the keys in FULL_KEY and ANALYTICS_KEY
"""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from contextlib import asynccontextmanager

from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

SERVER, BINARY = sys.argv[1:]
FULL, ANALYTICS = os.environ["FULL_KEY"], os.environ["ANALYTICS_KEY"]
# The way to connect, the client's mode, and the version that both sides must agree on.
WAYS = [
    ("http", "auto", "2026-07-28"),
    ("http", "legacy", "2025-11-25"),
    ("stdio", "auto", "2026-07-28"),
    ("stdio", "legacy", "2025-11-25"),
]
checks = 0


def check(holds, what):
    """Counts a check, and ends the script if it does not hold."""
    global checks
    checks += 1
    if not holds:
        sys.exit(f"mcp_client.py: {what}")


def rest(path, key=FULL, body=None):
    """Sends a request to the REST API."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, data, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@asynccontextmanager
async def connect(way, mode, key, write=False):
    """Connects the official client."""
    if way == "http":
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {key}"})
        transport = streamable_http_client(f"{SERVER}/mcp{'?write=1' if write else ''}", http_client=http)
    else:
        arguments = ["mcp", "--server", SERVER] + (["--allow-write"] if write else [])
        transport = StdioServerParameters(command=BINARY, args=arguments, env={"TRIBUTARY_API_KEY": key})
    async with Client(transport, mode=mode, read_timeout_seconds=10) as client:
        yield client


async def check_reading(client, version, app):
    """Checks everything that a client with a key for everything reads."""
    check(client.protocol_version == version, f"agreed on {client.protocol_version}")
    check(client.server_info.name == "tributary", f"server is {client.server_info}")
    check("list_apps" in client.instructions, "there are no instructions")
    tools = (await client.list_tools()).tools
    names = {tool.name for tool in tools}
    check({"list_apps", "get_stats", "explain_device", "search_docs"} <= names, f"tools are {names}")
    check("create_link" not in names, "a client that did not opt in can write")
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        check(tool.annotations.read_only_hint is True, f"{tool.name} does not say that it only reads")
    found = await client.call_tool("list_apps", {})
    check(found.structured_content == rest("/api/v1/apps"), f"apps are {found}")
    check(json.loads(found.content[0].text) == found.structured_content, "text and structure differ")
    stats = await client.call_tool("get_stats", {"appId": app, "groupBy": "day", "limit": 3})
    expected = rest(f"/api/v1/apps/{app}/stats?groupBy=day&limit=3")
    check(stats.structured_content == expected, f"stats are {stats}")
    missing = await client.call_tool("get_stats", {"appId": "app_01k9z3v7q8e4r9m2x5c6b7n8d0"})
    check(missing.is_error and "app_not_found" in missing.content[0].text, f"no error: {missing}")
    hits = await client.call_tool("search_docs", {"query": "attribution window"})
    check(hits.structured_content["data"], "the search found nothing")
    resources = (await client.list_resources()).resources
    check(len(resources) > 20, f"there are {len(resources)} resources")
    index = next(one for one in resources if one.name == "README.md")
    read = await client.read_resource(str(index.uri))
    check(read.contents[0].text.startswith("# Documentation"), f"the index is {read}")
    try:
        await client.call_tool("create_link", {"appId": app, "name": "No"})
        check(False, "a client that did not opt in created a link")
    except MCPError as error:
        check(error.error.code == -32602, f"the error is {error}")


async def check_writing(client, app, name):
    """Checks that a client that opted in creates a link."""
    created = await client.call_tool("create_link", {"appId": app, "name": name})
    check(not created.is_error, f"no link was created: {created}")
    link = created.structured_content["data"]
    stored = rest(f"/api/v1/apps/{app}/links/{link['id']}")["data"]
    check(stored["name"] == name, f"the link is {stored}")


async def check_analytics(client, app):
    """Checks that a key for analytics reads figures only."""
    figures = await client.call_tool("get_overview", {"appId": app})
    check(not figures.is_error, f"no figures: {figures}")
    refused = await client.call_tool("list_links", {"appId": app})
    check(refused.is_error and "insufficient_permission" in refused.content[0].text, f"{refused}")


async def check_wrong_key(way, mode):
    """Checks that a wrong key is reported, instead of an empty server."""
    try:
        async with connect(way, mode, "ak_live_wrong") as client:
            await client.list_tools()
    except BaseExceptionGroup as group:
        check(group.subgroup(MCPError) is not None, f"the error is {group!r}")
    except MCPError as error:
        check(True, f"{error}")
    else:
        check(False, "a wrong key was accepted")


def check_documents():
    """Checks that the binary contains the documents."""
    for path, start in [("/llms.txt", "# Tributary\n\n> "), ("/docs", "# "), ("/docs/API.md", "# ")]:
        with urllib.request.urlopen(SERVER + path, timeout=10) as answer:
            text = answer.read().decode()
        check(text.startswith(start), f"{path} is {text[:80]}")


async def main():
    app = rest("/api/v1/apps", body={"name": "Runner"})["data"]["id"]
    for way, mode, version in WAYS:
        async with connect(way, mode, FULL) as client:
            await check_reading(client, version, app)
        async with connect(way, mode, FULL, write=True) as client:
            await check_writing(client, app, f"{way} {mode}")
        async with connect(way, mode, ANALYTICS) as client:
            await check_analytics(client, app)
        await check_wrong_key(way, mode)
        print(f"{way}, {mode}: agreed on {version}")
    check_documents()
    print(f"{checks} checks")


asyncio.run(main())
