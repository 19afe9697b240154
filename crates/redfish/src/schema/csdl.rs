//! CSDL of our own objects and actions (OData 4.0, "CSDL XML Representation"; DSP0266, "Data
//! model").
//!
//! Each file has two namespaces: one without a version, with the abstract object and the actions,
//! and one of version 1.0.0 with what the object holds.

use super::actions::{self, Action, version_of_actions};
use super::shape::{Definition, Kind, Property, Shape};
use super::{EDM, EDMX, standard_uri};
use crate::change::bodies::{self, Takes};
use crate::routes::Resource;

/// Writes elements, indented.
pub struct Xml {
    text: String,
    open: Vec<&'static str>,
}

/// A text as the value of an attribute (XML 1.0, section 2.4).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Xml {
    /// A document without an element.
    pub fn new() -> Self {
        Self { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), open: Vec::new() }
    }

    fn begin(&mut self, name: &str, attributes: Attributes<'_>) {
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push('<');
        self.text.push_str(name);
        for (key, value) in attributes {
            self.text.push_str(&format!(" {key}=\"{}\"", escaped(value)));
        }
    }

    /// An element that holds nothing.
    pub fn element(&mut self, name: &str, attributes: Attributes<'_>) {
        self.begin(name, attributes);
        self.text.push_str("/>\n");
    }

    /// Opens an element.
    pub fn open(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.begin(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    /// Closes the element opened last.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("{}</{name}>\n", "  ".repeat(self.open.len())));
        }
    }

    /// Closes all, and gives the document.
    pub fn end(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    /// Where namespaces of another file are found.
    pub fn reference(&mut self, uri: &str, namespaces: &[(&str, Option<&str>)]) {
        self.open("edmx:Reference", &[("Uri", uri)]);
        for (namespace, alias) in namespaces {
            match alias {
                Some(alias) => {
                    let both = [("Namespace", *namespace), ("Alias", *alias)];
                    self.element("edmx:Include", &both);
                }
                None => self.element("edmx:Include", &[("Namespace", *namespace)]),
            }
        }
        self.close();
    }

    fn about(&mut self, text: &str) {
        if !text.is_empty() {
            for term in ["OData.Description", "OData.LongDescription"] {
                self.element("Annotation", &[("Term", term), ("String", text)]);
            }
        }
    }

    fn permission(&mut self) {
        let read = [("Term", "OData.Permissions"), ("EnumMember", "OData.Permission/Read")];
        self.element("Annotation", &read);
    }
}

/// One file: of the object that extends `of`, if there is one, and of the actions on it.
pub fn file(of: &str, shape: Option<&Shape>) -> String {
    let mut xml = Xml::new();
    xml.open("edmx:Edmx", &[("xmlns:edmx", EDMX), ("Version", "4.0")]);
    references(&mut xml, of);
    xml.open("edmx:DataServices", &[]);
    let space = format!("Palisade{of}");
    xml.open("Schema", &[("xmlns", EDM), ("Namespace", &space)]);
    xml.element("Annotation", &[("Term", "Redfish.OwningEntity"), ("String", "Palisade")]);
    if let Some(shape) = shape {
        let base = [("Name", of), ("BaseType", "Resource.OemObject"), ("Abstract", "true")];
        xml.open("ComplexType", &base);
        xml.about(&shape.about);
        xml.close();
    }
    for own in actions::on(of) {
        action(&mut xml, &space, of, &own);
    }
    xml.close();
    let versioned = format!("{space}.v1_0_0");
    xml.open("Schema", &[("xmlns", EDM), ("Namespace", &versioned)]);
    xml.element("Annotation", &[("Term", "Redfish.OwningEntity"), ("String", "Palisade")]);
    xml.about("The first version.");
    if let Some(shape) = shape {
        let base = format!("{space}.{of}");
        object(&mut xml, &versioned, (of, Some(&base)), &shape.about, &shape.properties);
        for (name, about, definition) in &shape.definitions {
            match definition {
                Definition::Object(properties) => {
                    object(&mut xml, &versioned, (name, None), about, properties);
                }
                Definition::Words(words) => enumeration(&mut xml, name, about, words),
            }
        }
    }
    xml.end()
}

fn references(xml: &mut Xml, of: &str) {
    let vocabulary = |name: &str| {
        let folder = "http://docs.oasis-open.org/odata/odata/v4.0/errata03/csd01/complete";
        format!("{folder}/vocabularies/{name}.xml")
    };
    xml.reference(&vocabulary("Org.OData.Core.V1"), &[("Org.OData.Core.V1", Some("OData"))]);
    let extensions =
        [("RedfishExtensions.v1_0_0", Some("Redfish")), ("Validation.v1_0_0", Some("Validation"))];
    xml.reference(&standard_uri("RedfishExtensions"), &extensions);
    let resource = [("Resource", None), ("Resource.v1_0_0", None)];
    xml.reference(&standard_uri("Resource"), &resource);
    let own = actions::on(of);
    if !own.is_empty() {
        let versioned = format!("{of}.{}", version_of_actions(of));
        xml.reference(&standard_uri(of), &[(of, None), (&versioned, None)]);
    }
    let mut parameters = own.iter().flat_map(|action| &action.parameters);
    let is_drive = |takes: &Takes| *takes == Takes::Link(Resource::Drive);
    let has_drives = |own: &bodies::Property| match own.takes {
        Takes::List(of, ..) => is_drive(of),
        other => is_drive(&other),
    };
    if of != "Drive" && parameters.any(has_drives) {
        xml.reference(&standard_uri("Drive"), &[("Drive", None)]);
    }
}

fn object(
    xml: &mut Xml,
    space: &str,
    (name, base): (&str, Option<&str>),
    about: &str,
    properties: &[Property],
) {
    match base {
        Some(base) => xml.open("ComplexType", &[("Name", name), ("BaseType", base)]),
        None => xml.open("ComplexType", &[("Name", name)]),
    }
    xml.element("Annotation", &[("Term", "OData.AdditionalProperties"), ("Bool", "false")]);
    xml.about(about);
    for own in properties {
        property(xml, space, own);
    }
    xml.close();
}

fn property(xml: &mut Xml, space: &str, own: &Property) {
    let one = match &own.kind {
        Kind::Plain(kind) => (*kind).to_owned(),
        Kind::Own(name) => format!("{space}.{name}"),
        Kind::Link => "Resource.Item".to_owned(),
    };
    let kind = if own.is_list { format!("Collection({one})") } else { one };
    let element = if own.kind == Kind::Link { "NavigationProperty" } else { "Property" };
    // Of a list this says whether its members may be (OData 4.0 CSDL, section 6.2.1).
    let may_be_null = if own.may_be_null || own.holds_null { "true" } else { "false" };
    xml.open(element, &[("Name", &own.name), ("Type", &kind), ("Nullable", may_be_null)]);
    xml.permission();
    xml.about(&own.about);
    if let Some(minimum) = own.minimum {
        let minimum = minimum.to_string();
        xml.element("Annotation", &[("Term", "Validation.Minimum"), ("Int", &minimum)]);
    }
    xml.close();
}

fn enumeration<T: AsRef<str>>(xml: &mut Xml, name: &str, about: &str, words: &[(T, T)]) {
    xml.open("EnumType", &[("Name", name)]);
    xml.about(about);
    for (word, about) in words {
        let (word, about) = (word.as_ref(), about.as_ref());
        if about.is_empty() {
            xml.element("Member", &[("Name", word)]);
        } else {
            xml.open("Member", &[("Name", word)]);
            xml.about(about);
            xml.close();
        }
    }
    xml.close();
}

/// What a parameter takes, as CSDL names it.
fn kind(takes: &Takes, space: &str) -> String {
    match *takes {
        Takes::Text | Takes::Uri | Takes::Address | Takes::MailUri | Takes::Secret => {
            "Edm.String".to_owned()
        }
        Takes::Whole(..) => "Edm.Int64".to_owned(),
        Takes::Truth => "Edm.Boolean".to_owned(),
        Takes::Word(name, _) => format!("{space}.{name}"),
        Takes::Link(Resource::Drive) => "Drive.Drive".to_owned(),
        Takes::Link(_) | Takes::Object(_) | Takes::Headers => "Resource.Item".to_owned(),
        Takes::List(of, ..) => format!("Collection({})", kind(of, space)),
    }
}

fn action(xml: &mut Xml, space: &str, of: &str, own: &Action) {
    xml.open("Action", &[("Name", own.name), ("IsBound", "true")]);
    xml.about(own.about);
    let bound = format!("{of}.{}.OemActions", version_of_actions(of));
    xml.element("Parameter", &[("Name", of), ("Type", &bound)]);
    for parameter in &own.parameters {
        let kind = kind(&parameter.takes, space);
        let (name, kind) = (("Name", parameter.name), ("Type", kind.as_str()));
        match parameter.must {
            true => xml.open("Parameter", &[name, kind, ("Nullable", "false")]),
            false => xml.open("Parameter", &[name, kind]),
        }
        xml.about(parameter.about);
        xml.close();
    }
    xml.close();
    for parameter in &own.parameters {
        if let Takes::Word(name, words) = parameter.takes {
            enumeration(xml, name, parameter.about, words);
        }
    }
}
