// Command manual renders the documentation into the HTML of the page that the
// gateway serves, so that what is read there is what docs/ says.
//
//	go -C tools run ./manual [-root ..] [-output ../internal/page]
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "the checkout")
	output := flag.String("output", "../internal/page", "the folder to write to")
	flag.Parse()
	manual, err := render(*root)
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range manual {
		if err := os.WriteFile(filepath.Join(*output, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
