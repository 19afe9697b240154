//! What a request's body holds, read strictly: who takes a property says of which type it must
//! be, and what nobody took is refused.

use super::tree::{Tree, may_be_key, pointer_part};
use crate::error::{Base, Refusal};

/// Annotations that clients send back as they got them. They change nothing.
const IGNORED: [&str; 4] = ["@odata.id", "@odata.type", "@odata.context", "@odata.etag"];

/// A value, where it is, and the action whose parameter it is.
#[derive(Clone)]
pub struct Node<'a> {
    tree: &'a Tree,
    /// A JSON pointer in a fragment, such as `#/Links/Drives/0`.
    path: String,
    action: Option<&'static str>,
}

/// How a path is told: without what marks a fragment.
fn shown(path: &str) -> &str {
    path.strip_prefix("#/").unwrap_or(path)
}

impl<'a> Node<'a> {
    /// The whole body of a request, or of an action.
    pub fn root(tree: &'a Tree, action: Option<&'static str>) -> Self {
        Self { tree, path: "#".to_owned(), action }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The refusal of a value: one message for properties, one for parameters.
    fn wrong(&self, property: &Base, parameter: &Base) -> Refusal {
        let (value, name) = (self.tree.shown(), shown(&self.path));
        match self.action {
            Some(action) => Refusal::base(parameter, &[&value, name, action]),
            None => Refusal::base(property, &[&value, name]),
        }
        .at(&self.path)
    }

    /// It has the wrong type.
    pub fn wrong_type(&self) -> Refusal {
        if self.path == "#" {
            return Refusal::base(&Base::UNRECOGNIZED_BODY, &[]);
        }
        self.wrong(&Base::PROPERTY_TYPE, &Base::PARAMETER_TYPE)
    }

    /// It is none of these.
    pub fn not_in(&self, words: &[&str]) -> Refusal {
        self.wrong(&Base::PROPERTY_NOT_IN_LIST, &Base::PARAMETER_NOT_IN_LIST)
            .advise(&format!("Give one of: {}.", words.join(", ")))
    }

    /// It has the wrong format.
    pub fn wrong_format(&self) -> Refusal {
        self.wrong(&Base::PROPERTY_FORMAT, &Base::PARAMETER_TYPE)
    }

    /// It can't be taken, and is not told.
    pub fn wrong_secret(&self) -> Refusal {
        let name = shown(&self.path);
        match self.action {
            Some(action) => Refusal::base(&Base::PARAMETER_VALUE, &[name, action]),
            None => Refusal::base(&Base::PROPERTY_VALUE, &[name]),
        }
        .at(&self.path)
    }

    /// Its text, which is told in no refusal.
    pub fn secret(&self) -> Result<&'a str, Refusal> {
        match self.tree {
            Tree::Text(text) => Ok(text),
            _ => Err(self.wrong_secret()),
        }
    }

    /// It is less, or more, than can be.
    pub fn out_of_range(&self, from: u64, to: u64) -> Refusal {
        self.wrong(&Base::PROPERTY_RANGE, &Base::PARAMETER_RANGE)
            .advise(&format!("Give a number from {from} to {to}."))
    }

    /// It says something else than another property.
    pub fn conflict(&self, other: &str) -> Refusal {
        Refusal::base(&Base::PROPERTY_CONFLICT, &[shown(&self.path), other]).at(&self.path)
    }

    /// It can't be changed.
    pub fn read_only(&self) -> Refusal {
        Refusal::base(&Base::PROPERTY_NOT_WRITABLE, &[shown(&self.path)]).at(&self.path)
    }

    /// Its link leads nowhere.
    pub fn leads_nowhere(&self, uri: &str) -> Refusal {
        if may_be_key(uri) {
            return self.wrong_secret();
        }
        Refusal::base(&Base::RESOURCE_MISSING, &[uri])
            .with_status(400)
            .at(&self.path)
            .advise(&format!("Correct the property {}.", shown(&self.path)))
    }

    /// Its link leads to something of another kind than `wanted`.
    pub fn other_kind(&self, uri: &str, wanted: &str) -> Refusal {
        if may_be_key(uri) {
            return self.wrong_secret();
        }
        Refusal::base(&Base::PROPERTY_RESOURCE, &[shown(&self.path), uri, uri])
            .at(&self.path)
            .advise(&format!("Name a {wanted}."))
    }

    /// Its text.
    pub fn text(&self) -> Result<&'a str, Refusal> {
        match self.tree {
            Tree::Text(text) => Ok(text),
            _ => Err(self.wrong_type()),
        }
    }

    /// Its text, which must be one of these.
    pub fn word(&self, words: &[&str]) -> Result<&'a str, Refusal> {
        let text = self.text()?;
        if words.contains(&text) { Ok(text) } else { Err(self.not_in(words)) }
    }

    /// What it says to yes or no.
    pub fn truth(&self) -> Result<bool, Refusal> {
        match self.tree {
            Tree::Truth(value) => Ok(*value),
            _ => Err(self.wrong_type()),
        }
    }

    /// Its number, which must be whole and within these.
    pub fn whole(&self, from: u64, to: u64) -> Result<u64, Refusal> {
        match self.tree {
            Tree::Whole(value) if (from..=to).contains(value) => Ok(*value),
            Tree::Whole(_) => Err(self.out_of_range(from, to)),
            Tree::Number(value) if value.fract() == 0.0 => Err(self.out_of_range(from, to)),
            _ => Err(self.wrong_type()),
        }
    }

    /// Its number as 32 bits.
    pub fn whole_u32(&self, from: u32) -> Result<u32, Refusal> {
        let value = self.whole(from.into(), u32::MAX.into())?;
        u32::try_from(value).map_err(|_| self.out_of_range(from.into(), u32::MAX.into()))
    }

    /// Its members: so many at least, and at most.
    pub fn list(&self, least: usize, most: usize) -> Result<Vec<Self>, Refusal> {
        let Tree::List(items) = self.tree else { return Err(self.wrong_type()) };
        let size = |base, limit: usize| {
            Refusal::base(base, &[shown(&self.path), &limit.to_string()]).at(&self.path)
        };
        if items.len() < least {
            return Err(size(&Base::ARRAY_TOO_SHORT, least));
        }
        if items.len() > most {
            return Err(size(&Base::ARRAY_TOO_LONG, most));
        }
        let node = |(number, tree)| {
            let path = format!("{}/{number}", self.path);
            Self { tree, path, action: self.action }
        };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// Its one member.
    pub fn only(&self) -> Result<Self, Refusal> {
        self.list(1, 1)?.into_iter().next().ok_or_else(|| self.wrong_type())
    }

    /// Its members' texts.
    pub fn texts(&self, least: usize, most: usize) -> Result<Vec<String>, Refusal> {
        self.list(least, most)?.iter().map(|one| one.text().map(str::to_owned)).collect()
    }

    /// Its properties.
    pub fn fields(&self) -> Result<Fields<'a>, Refusal> {
        let Tree::Object(properties) = self.tree else { return Err(self.wrong_type()) };
        let left = properties.iter().map(|(name, tree)| (name.as_str(), tree)).collect();
        Ok(Fields { left, path: self.path.clone(), action: self.action })
    }

    /// The URI that it links to: it must be `{"@odata.id": URI}`.
    pub fn link(&self) -> Result<&'a str, Refusal> {
        let mut fields = self.fields()?;
        let uri = fields.need("@odata.id")?.text()?;
        fields.end()?;
        Ok(uri)
    }
}

/// An object's properties that nobody took yet.
pub struct Fields<'a> {
    left: Vec<(&'a str, &'a Tree)>,
    path: String,
    action: Option<&'static str>,
}

impl<'a> Fields<'a> {
    fn own(&self, name: &str) -> String {
        format!("{}/{}", self.path, pointer_part(name))
    }

    fn about(&self, name: &str, property: &Base, parameter: &Base) -> Refusal {
        let own = self.own(name);
        match self.action {
            Some(action) => Refusal::base(parameter, &[action, shown(&own)]),
            None => Refusal::base(property, &[shown(&own)]),
        }
        .at(&own)
    }

    /// Refuses a change of nothing: no property, or annotations alone.
    pub fn not_empty(&self) -> Result<(), Refusal> {
        match self.left.iter().all(|(name, _)| self.is_ignored(name)) {
            true if self.left.is_empty() => Err(Refusal::base(&Base::EMPTY_JSON, &[])),
            true => Err(Refusal::base(&Base::NO_OPERATION, &[])),
            false => Ok(()),
        }
    }

    fn is_ignored(&self, name: &str) -> bool {
        self.path == "#" && IGNORED.contains(&name)
    }

    /// Takes a property, if it is there.
    pub fn take(&mut self, name: &str) -> Option<Node<'a>> {
        let at = self.left.iter().position(|(own, _)| *own == name)?;
        let (_, tree) = self.left.remove(at);
        Some(Node { tree, path: self.own(name), action: self.action })
    }

    /// Takes all properties that nobody took.
    pub fn take_all(&mut self) -> Vec<(&'a str, Node<'a>)> {
        let left = core::mem::take(&mut self.left);
        let node = |(name, tree): (&'a str, &'a Tree)| {
            (name, Node { tree, path: self.own(name), action: self.action })
        };
        left.into_iter().map(node).collect()
    }

    /// Takes a property that must be there.
    pub fn need(&mut self, name: &str) -> Result<Node<'a>, Refusal> {
        self.take(name).ok_or_else(|| self.missing(name))
    }

    /// A property is missing.
    pub fn missing(&self, name: &str) -> Refusal {
        self.about(name, &Base::PROPERTY_MISSING, &Base::PARAMETER_MISSING)
    }

    /// A yes or no; no if it is not there.
    pub fn flag(&mut self, name: &str) -> Result<bool, Refusal> {
        self.take(name).map_or(Ok(false), |node| node.truth())
    }

    /// Texts; none if they are not there.
    pub fn texts(&mut self, name: &str, most: usize) -> Result<Vec<String>, Refusal> {
        self.take(name).map_or_else(|| Ok(Vec::new()), |node| node.texts(0, most))
    }

    /// What is under `Oem.Palisade`; nothing if it is not there.
    pub fn oem(&mut self) -> Result<Self, Refusal> {
        let Some(oem) = self.take("Oem") else {
            let path = format!("{}/Oem/Palisade", self.path);
            return Ok(Fields { left: Vec::new(), path, action: self.action });
        };
        let mut vendors = oem.fields()?;
        let palisade = vendors.take("Palisade");
        vendors.end()?;
        let Some(palisade) = palisade else {
            let path = format!("{}/Palisade", oem.path());
            return Ok(Fields { left: Vec::new(), path, action: self.action });
        };
        let mut fields = palisade.fields()?;
        fields.left.retain(|(name, _)| *name != "@odata.type");
        Ok(fields)
    }

    /// Refuses what nobody took.
    pub fn end(self) -> Result<(), Refusal> {
        let unknown = |(name, _): &(&str, &Tree)| {
            self.about(name, &Base::PROPERTY_UNKNOWN, &Base::PARAMETER_UNKNOWN)
        };
        let left = self.left.iter().filter(|(name, _)| !self.is_ignored(name));
        Refusal::all(left.take(16).map(unknown).collect()).map_or(Ok(()), Err)
    }
}

/// Refuses properties that are there more than once.
pub fn refuse_doubled(tree: &Tree, action: Option<&'static str>) -> Result<(), Refusal> {
    let refusal = |path: String| {
        match action {
            Some(action) => Refusal::base(&Base::PARAMETER_DUPLICATE, &[action, shown(&path)]),
            None => Refusal::base(&Base::PROPERTY_DUPLICATE, &[shown(&path)]),
        }
        .at(&path)
    };
    Refusal::all(tree.doubled().into_iter().map(refusal).collect()).map_or(Ok(()), Err)
}
