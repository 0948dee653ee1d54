package main

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// codeRenderer renders code. In a console session it tells what is typed from
// the prompt before it and from what is printed. Code in a text, such as JSON in
// the column of a table, may be broken after a comma.
type codeRenderer struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (c codeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, c.renderBlock)
	r.Register(ast.KindCodeSpan, c.renderSpan)
}

func (codeRenderer) renderBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	_, _ = w.WriteString("<pre><code>")
	for i := range block.Lines().Len() {
		segment := block.Lines().At(i)
		line := string(segment.Value(source))
		command, typed := strings.CutPrefix(line, "$ ")
		if typed && string(block.Language(source)) == "console" {
			_, _ = w.WriteString("<i>$ </i><b>" + escape(strings.TrimSuffix(command, "\n")) + "</b>\n")
			continue
		}
		_, _ = w.WriteString(escape(line))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

func (codeRenderer) renderSpan(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<code>")
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		_, _ = w.WriteString(strings.ReplaceAll(escape(string(child.(*ast.Text).Value(source))), ",", ",<wbr>"))
	}
	_, _ = w.WriteString("</code>")
	return ast.WalkSkipChildren, nil
}

func escape(s string) string { return string(util.EscapeHTML([]byte(s))) }
