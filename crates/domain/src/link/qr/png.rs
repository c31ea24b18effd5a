//! Encodes images with few colours as PNG.

use miniz_oxide::deflate::compress_to_vec_zlib;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Level of compression: images have long runs, so more effort gains little.
const LEVEL: u8 = 6;

/// Encodes a square image. Each pixel is the number of its colour.
pub(super) fn encode(side: i32, palette: &[[u8; 3]], pixels: &[u8]) -> Vec<u8> {
    let side_bytes = side.to_be_bytes();
    let row = usize::try_from(side).unwrap_or(1).max(1);
    let mut header = [side_bytes, side_bytes].concat();
    // Eight bits per pixel, colours from a palette, the only compression and filtering, no interlacing.
    header.extend([8, 3, 0, 0, 0]);
    let mut rows = Vec::with_capacity(pixels.len() + row);
    for pixels in pixels.chunks(row) {
        // No filter.
        rows.push(0);
        rows.extend_from_slice(pixels);
    }
    let mut file = SIGNATURE.to_vec();
    write_chunk(&mut file, *b"IHDR", &header);
    write_chunk(&mut file, *b"PLTE", palette.as_flattened());
    write_chunk(&mut file, *b"IDAT", &compress_to_vec_zlib(&rows, LEVEL));
    write_chunk(&mut file, *b"IEND", &[]);
    file
}

fn write_chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend_from_slice(data);
    let checksum = crc32fast::hash(&file[start..]);
    file.extend(checksum.to_be_bytes());
}
