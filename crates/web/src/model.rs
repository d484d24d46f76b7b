//! The model of a page. Handlers build these values; one template renders them, so that every page
//! escapes and labels its content in the same way.

use signalbox_wording::{Named, Tone, Word};

use crate::text::plain;

/// The most characters of a text that stays on one line.
const SHORT: usize = 14;

/// The height of a picture of counts.
const SPARK: u32 = 16;

/// A piece of text with its icon, link and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The text.
    pub(crate) text: String,
    /// Its link. Only addresses of this server, or checked external ones.
    pub(crate) href: Option<String>,
    /// An icon's name, before the text.
    pub(crate) icon: Option<&'static str>,
    /// The name of the tone of the icon.
    pub(crate) tone: &'static str,
    /// A second, smaller line.
    pub(crate) sub: Option<String>,
    /// The time that the text is about, for `datetime` and the tooltip.
    pub(crate) time: Option<String>,
    /// Whether it is a number, which is right-aligned.
    pub(crate) number: bool,
    /// Whether it is code.
    pub(crate) code: bool,
    /// Whether it has a button to copy its text.
    pub(crate) copy: bool,
    /// The name of the class that shows only the start of its text, or an empty one. The full text is the
    /// tooltip.
    pub(crate) cut: &'static str,
    /// Progress: the part that is done, and the total.
    pub(crate) progress: Option<(usize, usize)>,
    /// Counts of equal parts of time that are drawn beside the text, the oldest first.
    pub(crate) spark: Vec<u32>,
    /// A badge beside the text, such as `known flaky`.
    pub(crate) mark: Option<&'static str>,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "numbers are given as they are")]
    pub(crate) fn number(text: impl ToString) -> Self {
        Self { text: text.to_string(), number: true, ..Self::default() }
    }

    pub(crate) fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: true, ..Self::default() }
    }

    /// Code that users want to copy, such as an id.
    pub(crate) fn to_copy(text: impl Into<String>) -> Self {
        Self { copy: true, ..Self::code(text) }
    }

    /// The id of a commit, of which the start is shown.
    pub(crate) fn commit(id: impl Into<String>) -> Self {
        Self { cut: "commit", ..Self::to_copy(id) }
    }

    /// A name that may be long, of which the start is shown.
    pub(crate) fn cut(text: &str) -> Self {
        Self { cut: "cut", ..Self::text(plain(text, 1_000)) }
    }

    /// The bars of the counts: how far from the left and from the top, and how high.
    pub(crate) fn bars(&self) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
        let most = self.spark.iter().copied().max().unwrap_or_default().max(1);
        let height = move |count: u32| u64::from(count) * u64::from(SPARK) / u64::from(most);
        self.spark.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(at, count)| {
            let height = u32::try_from(height(*count)).unwrap_or_default().max(1);
            (at * 3, SPARK - height, height)
        })
    }

    /// The counts in words.
    pub(crate) fn described(&self) -> String {
        let last = self.spark.last().copied().unwrap_or_default();
        let most = self.spark.iter().max().copied().unwrap_or_default();
        format!("{last} in the last hour, at most {most} in an hour")
    }

    /// How its column is laid out: known words and short texts are never broken, links get
    /// room, and anything else is broken where it must be.
    pub(crate) fn layout(&self) -> &'static str {
        if self.number {
            "num"
        } else if self.icon.is_some() {
            "word"
        } else if !self.cut.is_empty() || self.text.chars().count() <= SHORT {
            "short"
        } else if self.href.is_some() || self.code {
            "wide"
        } else {
            "text"
        }
    }

    pub(crate) fn word(word: Word) -> Self {
        Self {
            text: word.label.to_owned(),
            icon: Some(word.icon),
            tone: word.tone.name(),
            ..Self::default()
        }
    }

    pub(crate) fn named(it: &impl Named) -> Self {
        Self::word(it.named())
    }

    pub(crate) fn link(mut self, href: impl Into<String>) -> Self {
        self.href = Some(href.into());
        self
    }

    pub(crate) fn maybe_link(mut self, href: Option<String>) -> Self {
        self.href = href;
        self
    }

    pub(crate) fn sub(mut self, sub: impl Into<String>) -> Self {
        let sub = sub.into();
        self.sub = (!sub.is_empty()).then_some(sub);
        self
    }
}

/// A column's head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) label: &'static str,
    pub(crate) number: bool,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Its id, stable over updates.
    pub(crate) id: String,
    /// The name of a class, or an empty one.
    pub(crate) class: &'static str,
    pub(crate) cells: Vec<Cell>,
}

/// A table. On narrow screens each row becomes a card with labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) id: String,
    pub(crate) caption: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Row>,
    /// The text in place of rows.
    pub(crate) empty: String,
    /// Whether its rows become cards of two lines on narrow screens.
    pub(crate) dense: bool,
    /// Whether the caption is only for screen readers.
    pub(crate) quiet_caption: bool,
    /// The next page.
    pub(crate) more: Option<String>,
}

impl Table {
    /// A table; a head that starts with `#` is one of numbers.
    pub(crate) fn new(id: &str, caption: impl Into<String>, heads: &[&'static str]) -> Self {
        let head = |label: &&'static str| {
            let number = label.starts_with('#');
            Head { label: label.trim_start_matches('#'), number }
        };
        Self {
            id: id.to_owned(),
            caption: caption.into(),
            heads: heads.iter().map(head).collect(),
            empty: "Nothing to show.".to_owned(),
            quiet_caption: true,
            ..Self::default()
        }
    }

    pub(crate) fn empty(mut self, text: impl Into<String>) -> Self {
        self.empty = text.into();
        self
    }

    /// The label of a column, for rows that are shown as cards.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    pub(crate) fn label(&self, column: &usize) -> &'static str {
        self.heads.get(*column).map_or("", |head| head.label)
    }

    pub(crate) fn push(&mut self, id: impl std::fmt::Display, cells: Vec<Cell>) {
        let id = format!("{}-{id}", self.id);
        self.rows.push(Row { id, class: "", cells });
    }
}

/// A number with its name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tile {
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
    pub(crate) href: Option<String>,
}

/// A field of a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: String,
    /// The heading of the group that begins with it, or an empty one.
    pub(crate) heading: &'static str,
    /// `text`, `password`, `number`, `search`, `select`, `lines` or `boxes`.
    pub(crate) kind: &'static str,
    /// The value; for `boxes` the selected values, one per line.
    pub(crate) value: String,
    /// Values and labels of a `select` or of `boxes`.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) hint: String,
    /// Whether it must be filled in; for `boxes`, whether every box must be selected.
    pub(crate) required: bool,
}

impl Field {
    /// Whether a box is selected.
    pub(crate) fn ticked(&self, value: &str) -> bool {
        self.value.lines().any(|it| it == value)
    }
}

/// A form. Forms that change something are sent by POST and carry the session's form token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    pub(crate) id: String,
    pub(crate) action: String,
    pub(crate) post: bool,
    /// The title of a collapsed box; when it is empty the form is open.
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) hidden: Vec<(&'static str, String)>,
    pub(crate) fields: Vec<Field>,
    pub(crate) button: String,
    pub(crate) danger: bool,
}

/// A step of a timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimelineStep {
    pub(crate) id: String,
    pub(crate) what: Cell,
    pub(crate) when: Cell,
    pub(crate) lines: Vec<Cell>,
}

/// A block of a page.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// A message that stands out.
    Notice { tone: &'static str, icon: &'static str, title: String, text: String },
    /// The answer that the page is opened for.
    Answer { icon: &'static str, tone: &'static str, label: String, text: String, next: String },
    /// A paragraph.
    Text(String),
    /// Numbers.
    Tiles(Vec<Tile>),
    /// Numbers, each with what it counts, on one line.
    Summary(Vec<Tile>),
    /// Names and values.
    Details(Vec<(&'static str, Cell)>),
    /// Rows.
    Table(Table),
    /// A chart, and its numbers as a table.
    Chart(Box<crate::svg::Chart>, Table),
    /// A chart of what a table beside it has.
    Picture(Box<crate::svg::Chart>),
    /// Forms.
    Forms(Vec<Form>),
    /// A timeline.
    Timeline(Vec<TimelineStep>),
    /// Preformatted text.
    Pre(String),
    /// Output, in a taller frame; `follow`: it shows the end, also when there is more of it.
    Log { text: String, follow: bool },
    /// Preformatted text with its own name, for sections with several.
    Part(&'static str, String),
    /// Links.
    Links(Vec<Cell>),
}

impl Block {
    pub(crate) fn notice(tone: Tone, icon: &'static str, title: &str, text: &str) -> Self {
        Self::Notice { tone: tone.name(), icon, title: title.to_owned(), text: text.to_owned() }
    }
}

/// A section of a page under a heading; no heading when it is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) heading: String,
    pub(crate) note: String,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    pub(crate) fn new(id: &str, heading: impl Into<String>) -> Self {
        Self { id: id.to_owned(), heading: heading.into(), ..Self::default() }
    }

    pub(crate) fn plain(id: &str) -> Self {
        Self::new(id, "")
    }

    pub(crate) fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// A link of a menu.
#[derive(Clone, Debug)]
pub(crate) struct MenuItem {
    pub(crate) label: String,
    pub(crate) href: String,
    pub(crate) current: bool,
}

/// A page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// The heading, when it is not the title.
    pub(crate) heading: String,
    /// A line above the heading.
    pub(crate) above: Vec<Cell>,
    /// State and facts beside the heading.
    pub(crate) beside: Vec<Cell>,
    /// Links to related pages.
    pub(crate) menu: Vec<MenuItem>,
    pub(crate) sections: Vec<Section>,
    /// The topic of its live updates; none when it is empty.
    pub(crate) topic: String,
    /// The version of the topic that the page shows, or an earlier one.
    pub(crate) version: u64,
    /// The sentence that screen readers announce when it changes.
    pub(crate) announce: String,
    /// Whether updates are only announced, and shown on request.
    pub(crate) only_hint: bool,
    /// The API call for the same content.
    pub(crate) curl: String,
}

impl Page {
    /// Whether there is a table with rows.
    pub(crate) fn has_table(&self) -> bool {
        let mut blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.any(|it| matches!(it, Block::Table(table) if !table.rows.is_empty()))
    }
}
