#!/usr/bin/env python3
"""Writes the container image as an archive for `docker load`, `podman load` and skopeo, without a container engine.

usage: scripts/image.py --binary FILE --architecture ARCHITECTURE --version VERSION --commit COMMIT --output FILE

Files and configuration are those of the last stage of packaging/Dockerfile, in one layer. The archive has the layout of
an OCI image, and the index that older versions of Docker read; only the layer is compressed. SOURCE_DATE_EPOCH is the time of everything in it, so the
same binary gives the same archive on a machine with the same CA certificates."""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import shlex
import sys
import tarfile

DOCKERFILE = pathlib.Path(__file__).resolve().parent.parent / "packaging/Dockerfile"
CA_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# What the build stage of the Dockerfile makes.
BINARY, EMPTY_FOLDER = "/src/target/dist/tributary", "/empty"
# Docker's default for images without a PATH.
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def last_stage():
    """Returns the instructions after the last FROM, with their arguments."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if line and not line.startswith("#")]
    instructions = [line.split(" ", 1) for line in lines]
    start = max(number for number, (name, _) in enumerate(instructions) if name == "FROM")
    return instructions[start + 1:]


def entry(name, time, owner=0):
    info = tarfile.TarInfo(name.strip("/"))
    info.mtime, info.uid, info.gid = time, owner, owner
    return info


def archive(files, folders, time):
    """Returns a tar archive. `files` has the content and mode by path, `folders` the owner."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted({**files, **folders}):
            if path in folders:
                info = entry(path, time, folders[path])
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            else:
                content, mode = files[path]
                info = entry(path, time)
                info.size, info.mode = len(content), mode
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def parents(path):
    return [str(parent) for parent in pathlib.PurePosixPath(path).parents if str(parent) != "/"]


def layer(stage, binary, time):
    """Returns the archive of the root file system that the COPY instructions describe."""
    sources = {BINARY: (binary, 0o755), CA_CERTIFICATES: (pathlib.Path(CA_CERTIFICATES), 0o644)}
    files, folders = {}, {}
    for words in (shlex.split(rest) for name, rest in stage if name == "COPY"):
        options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
        source, target = [word for word in words if not word.startswith("--")]
        folders.update({parent: 0 for parent in parents(target)})
        if source == EMPTY_FOLDER:
            folders[target] = int(options.get("chown", "0").split(":")[0])
        elif source in sources:
            path, mode = sources[source]
            files[target] = (path.read_bytes(), mode)
        else:
            sys.exit(f"image.py: does not know where {source} in the Dockerfile comes from")
    return archive(files, folders, time)


def configuration(stage, labels):
    """Returns how an engine starts the image."""
    config = {"Env": [PATH], "WorkingDir": "/", "Labels": {}}
    for name, rest in stage:
        if name == "ENV":
            config["Env"] += shlex.split(rest)
        elif name == "LABEL":
            config["Labels"].update(word.split("=", 1) for word in shlex.split(rest))
        elif name == "USER":
            config["User"] = rest
        elif name == "VOLUME":
            config["Volumes"] = {path: {} for path in shlex.split(rest)}
        elif name == "EXPOSE":
            config["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
        elif name == "STOPSIGNAL":
            config["StopSignal"] = rest
        elif name in ("ENTRYPOINT", "CMD"):
            config[name.capitalize()] = json.loads(rest)
        elif name != "COPY":
            sys.exit(f"image.py: does not know the instruction {name}")
    config["Labels"].update(labels)
    return config


def compact(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def image(arguments, time):
    """Returns the files of the archive."""
    stage = last_stage()
    blobs = {}

    def store(content, kind, **more):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content), **more}

    created = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"org.opencontainers.image.created": created, "org.opencontainers.image.revision": arguments.commit}
    platform = {"architecture": arguments.architecture, "os": "linux"}
    if arguments.architecture == "arm64":
        platform["variant"] = "v8"
    files = layer(stage, arguments.binary, time)
    # Without the time of today in the header.
    root = store(gzip.compress(files, mtime=0), "layer.v1.tar+gzip")
    config = store(compact({
        **platform,
        "created": created,
        "config": configuration(stage, labels),
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
        "history": [{"created": created, "created_by": "scripts/image.py"}],
    }), "config.v1+json")
    manifest = store(compact({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [root],
    }), "manifest.v1+json", platform=platform, annotations={
        "io.containerd.image.name": f"docker.io/library/tributary:{arguments.version}",
        "org.opencontainers.image.ref.name": arguments.version,
    })
    path = {part["digest"]: "blobs/" + part["digest"].replace(":", "/") for part in (config, root)}
    tags = [f"tributary:{arguments.version}"]
    return {
        **blobs,
        "oci-layout": compact({"imageLayoutVersion": "1.0.0"}),
        "index.json": compact({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [manifest],
        }),
        # For versions of Docker before 25.
        "manifest.json": compact([
            {"Config": path[config["digest"]], "RepoTags": tags, "Layers": [path[root["digest"]]]}
        ]),
    }


def main():
    parser = argparse.ArgumentParser(description="Writes the container image as an archive.")
    for name, kind in [("binary", pathlib.Path), ("architecture", str), ("version", str), ("commit", str),
                       ("output", pathlib.Path)]:
        parser.add_argument(f"--{name}", required=True, type=kind)
    arguments = parser.parse_args()
    time = int(os.environ["SOURCE_DATE_EPOCH"])
    files = {path: (content, 0o644) for path, content in image(arguments, time).items()}
    folders = {folder: 0 for path in files for folder in parents("/" + path)}
    folders = {folder.strip("/"): owner for folder, owner in folders.items()}
    arguments.output.write_bytes(archive(files, folders, time))


if __name__ == "__main__":
    main()
