//! A picture of the window, as a file.

use std::path::Path;

use eframe::egui::ColorImage;

use crate::atomic::write_atomically;

/// Writes the pixels of the window to `path` as PNG.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, pixels: &ColorImage) -> std::io::Result<()> {
    let [width, height] = pixels.size.map(|count| u32::try_from(count).expect("a window has fewer pixels than u32::MAX"));
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header()?.write_image_data(pixels.as_raw())?;
    write_atomically(path, &file)
}
