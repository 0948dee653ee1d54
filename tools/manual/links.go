package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// repository is where links lead whose target is not on the page.
const repository = "https://github.com/lockgateway/lockgateway/blob/main/"

// links are the ids on the page, by the file that they are from, in order.
type links map[string][]string

// add notes an id, which must be the only one of its kind on the page.
func (l links) add(file, id string) error {
	for other, ids := range l {
		for _, known := range ids {
			if known == id {
				return fmt.Errorf("both %s and %s have a #%s", other, file, id)
			}
		}
	}
	l[file] = append(l[file], id)
	return nil
}

// rewrite makes the links of a chapter lead to the page itself, or else to the
// repository.
func (l links) rewrite(root string, c chapter) error {
	return ast.Walk(c.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to, err := l.resolve(root, c.file, string(link.Destination))
		link.Destination = []byte(to)
		return ast.WalkContinue, err
	})
}

func (l links) resolve(root, from, to string) (string, error) {
	if strings.Contains(to, "://") {
		return to, nil
	}
	file, id, hasID := strings.Cut(to, "#")
	if file == "" {
		file = from
	} else {
		file = path.Join(path.Dir(from), file)
	}
	ids := l[file]
	switch {
	case len(ids) > 0 && !hasID:
		return "#" + ids[0], nil
	case len(ids) > 0:
		for _, known := range ids {
			if known == id {
				return "#" + id, nil
			}
		}
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return "", fmt.Errorf("the link to %s leads nowhere: %w", to, err)
	}
	if hasID {
		file += "#" + id
	}
	return repository + file, nil
}
