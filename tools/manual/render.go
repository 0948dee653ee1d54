package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// chapters are what the page has, in this order: a whole file, or the section
// of one under a heading.
var chapters = []struct{ file, heading string }{
	{"README.md", "Use it"},
	{"docs/api.md", ""},
	{"README.md", "When a request fails"},
	{"README.md", "Do and don't"},
	{"README.md", "What it promises, and what not"},
	{"docs/faq.md", ""},
}

// chapterLevel is the level of a chapter's heading; the page's own title is
// above it.
const chapterLevel = 2

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(
		html.WithUnsafe(), // for the <sup> of our own texts
		renderer.WithNodeRenderers(util.Prioritized(codeRenderer{}, 1)),
	),
)

// chapter is a part of a file, being made a part of the page.
type chapter struct {
	file   string
	source []byte
	root   ast.Node
}

// render returns the files that the page is made of, by name.
func render(root string) (map[string][]byte, error) {
	var all []chapter
	targets := make(links)
	for _, wanted := range chapters {
		c, err := read(root, wanted.file, wanted.heading)
		if err != nil {
			return nil, err
		}
		if err := c.adopt(targets); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	var manual, contents bytes.Buffer
	for _, c := range all {
		if err := targets.rewrite(root, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
		c.list(&contents)
		manual.WriteString("<section>\n")
		if err := markdown.Renderer().Render(&manual, c.source, c.root); err != nil {
			return nil, err
		}
		manual.WriteString("</section>\n")
	}
	return map[string][]byte{"manual.html": manual.Bytes(), "contents.html": contents.Bytes()}, nil
}

// read parses a file, and leaves of it what is under the heading, if one is
// given.
func read(root, file, heading string) (chapter, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return chapter{}, err
	}
	c := chapter{file: file, source: source, root: markdown.Parser().Parse(text.NewReader(source))}
	inside := heading == ""
	found := inside
	for n := c.root.FirstChild(); n != nil; {
		next := n.NextSibling()
		if h, ok := n.(*ast.Heading); ok && heading != "" && h.Level <= chapterLevel {
			inside = c.text(h) == heading
			found = found || inside
		}
		if _, comment := n.(*ast.HTMLBlock); !inside || comment {
			c.root.RemoveChild(c.root, n)
		}
		n = next
	}
	if !found {
		return chapter{}, fmt.Errorf("%s has no heading %q", file, heading)
	}
	return c, nil
}

// adopt fits the levels of the headings into the page, and makes each heading
// and each question a link to itself, which is how one gets a link to it.
func (c chapter) adopt(targets links) error {
	shift := chapterLevel - c.root.FirstChild().(*ast.Heading).Level
	for n := c.root.FirstChild(); n != nil; n = n.NextSibling() {
		var id string
		switch n := n.(type) {
		case *ast.Heading:
			n.Level += shift
			value, _ := n.AttributeString("id")
			id = string(value.([]byte))
			linkChildren(n, id)
		case *ast.Paragraph:
			strong, ok := n.FirstChild().(*ast.Emphasis)
			if !ok || !strings.HasSuffix(c.text(strong), "?") {
				continue
			}
			id = slug(c.text(strong))
			n.SetAttributeString("id", []byte(id))
			n.SetAttributeString("class", []byte("question"))
			linkChildren(strong, id)
		default:
			continue
		}
		if err := targets.add(c.file, id); err != nil {
			return err
		}
	}
	return nil
}

func linkChildren(n ast.Node, id string) {
	link := ast.NewLink()
	link.Destination = []byte("#" + id)
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		link.AppendChild(link, child)
	}
	n.AppendChild(n, link)
}

// list writes the chapter's entry in the contents. Only the API has so many
// sections that they are listed.
func (c chapter) list(out *bytes.Buffer) {
	withSections := path.Base(c.file) == "api.md"
	open := false
	for n := c.root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok || h.Level > chapterLevel && !withSections || h.Level > chapterLevel+1 {
			continue
		}
		if h.Level > chapterLevel && !open {
			out.WriteString("<ul>\n")
			open = true
		}
		id, _ := h.AttributeString("id")
		fmt.Fprintf(out, "<li><a href=\"#%s\">%s</a>", id, escape(c.text(h)))
		if h.Level > chapterLevel {
			out.WriteString("</li>\n")
		}
	}
	if open {
		out.WriteString("</ul>\n")
	}
	out.WriteString("</li>\n")
}

// text is what is written in a node, without its markup.
func (c chapter) text(n ast.Node) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			b.Write(t.Value(c.source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
			continue
		}
		b.WriteString(c.text(child))
	}
	return b.String()
}

// slug makes an id of a question.
func slug(question string) string {
	words := strings.FieldsFunc(strings.ToLower(question), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}
