//! Separates a Rust file into code and comments.

/// The code and the comments of a Rust file, as two texts with the same lines as the file. In the code, blanks replace the
/// comments; in the comments, blanks replace the code.
pub struct Source {
    /// Path of the file from the root of the workspace, with `/` between folders.
    pub path: String,
    /// Lines of the file without comments and without the contents of strings.
    pub code: Vec<String>,
    /// Lines of the file with only the comments, including documentation.
    pub comments: Vec<String>,
}

/// The kind of text that contains the current position.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    Line,
    /// Inside block comments that are nested to this depth.
    Block(usize),
    Text,
    /// Inside a raw string with this number of `#` characters.
    Raw(usize),
}

impl Source {
    /// Separates the text of a file into code and comments.
    pub fn new(path: impl Into<String>, text: &str) -> Self {
        let (mut code, mut comments) = (String::new(), String::new());
        let mut state = State::Code;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (length, next) = step(state, rest, code.chars().next_back());
            let (taken, after) = rest.split_at(length.max(first.len_utf8()));
            let comment = is_comment(state) || is_comment(next);
            let kept = state == State::Code && next == State::Code;
            for c in taken.chars() {
                code.push(if c == '\n' || kept { c } else { ' ' });
                comments.push(if c == '\n' || comment { c } else { ' ' });
            }
            (state, rest) = (next, after);
        }
        let lines = |text: String| text.lines().map(str::to_owned).collect();
        Source { path: path.into(), code: lines(code), comments: lines(comments) }
    }
}

fn is_comment(state: State) -> bool {
    matches!(state, State::Line | State::Block(_))
}

/// The number of bytes to read next, and the state after these bytes. `before` is the character before `rest`, or a space if that
/// character belongs to a comment or a string.
fn step(state: State, rest: &str, before: Option<char>) -> (usize, State) {
    match state {
        State::Code => from_code(rest, before),
        State::Line => (1, if rest.starts_with('\n') { State::Code } else { state }),
        State::Block(1) if rest.starts_with("*/") => (2, State::Code),
        State::Block(depth) if rest.starts_with("*/") => (2, State::Block(depth - 1)),
        State::Block(depth) if rest.starts_with("/*") => (2, State::Block(depth + 1)),
        State::Block(_) => (1, state),
        State::Text if rest.starts_with('\\') => (2, state),
        State::Text => (1, if rest.starts_with('"') { State::Code } else { state }),
        State::Raw(hashes) => {
            let end = format!("\"{}", "#".repeat(hashes));
            if rest.starts_with(&end) { (end.len(), State::Code) } else { (1, state) }
        }
    }
}

fn from_code(rest: &str, before: Option<char>) -> (usize, State) {
    let in_word = before.is_some_and(|c| c != 'b' && (c.is_alphanumeric() || c == '_'));
    if rest.starts_with("//") {
        (2, State::Line)
    } else if rest.starts_with("/*") {
        (2, State::Block(1))
    } else if let Some(hashes) = raw_string(rest).filter(|_| !in_word) {
        (2 + hashes, State::Raw(hashes))
    } else if rest.starts_with('"') {
        (1, State::Text)
    } else if rest.starts_with('\'') {
        (char_literal(rest), State::Code)
    } else {
        (1, State::Code)
    }
}

/// If a raw string begins at the start of `rest`, the number of its `#` characters.
fn raw_string(rest: &str) -> Option<usize> {
    let rest = rest.strip_prefix('r')?;
    let hashes = rest.bytes().take_while(|&byte| byte == b'#').count();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// The length of a character literal such as `'"'`, whose quote begins no string. For a lifetime such as `'a` the length is 1.
fn char_literal(rest: &str) -> usize {
    let inner = if rest[1..].starts_with('\\') { 2 } else { 1 };
    let skipped: usize = rest.chars().take(1 + inner).map(char::len_utf8).sum();
    if rest[skipped..].starts_with('\'') { skipped + 1 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new("x.rs", text).code.join("\n").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert_eq!(code("a /* b /* c */ d */ e // f\ng"), "a e g");
        assert_eq!(code(r#"f("a \" b", 'c', '"', '\'', "d") + 'x"#), "f( , 'c', '\"', '\\'', ) + 'x");
        assert_eq!(code("r#\"a \" b\"# c br\"d\" for\"e\" h"), "c b for h");
        assert_eq!(code("fn f<'a>(x: &'a str) {} // ü\nα·β"), "fn f<'a>(x: &'a str) {} α·β");
    }

    #[test]
    fn comments_keep_their_lines() {
        let source = Source::new("x.rs", "a\n/// b\n\"c\" // d\n");
        assert_eq!(source.comments.iter().map(|line| line.trim()).collect::<Vec<_>>(), ["", "/// b", "// d"]);
        assert_eq!(source.code.len(), 3);
    }
}
