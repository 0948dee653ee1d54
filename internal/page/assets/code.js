// A request in the languages that it can be copied in. An address has nothing
// in it that any of them would have to escape.

export const languages = {
  curl: (url) => `curl '${url}'`,

  python: (url) => `import json
import urllib.request

with urllib.request.urlopen("${url}") as answer:
    print(json.load(answer))`,

  javascript: (url) => `const answer = await fetch("${url}", { cache: "no-store" });
console.log(answer.status, await answer.json());`,

  go: (url) => `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
)

func main() {
	res, err := http.Get("${url}")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.StatusCode, string(body))
}`,
};

// copy puts a text on the clipboard. Without TLS a page may not do so by itself,
// and has it selected and copied as a person does.
export async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (element.select) element.select();
    else getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}
