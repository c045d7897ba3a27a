// Command celgo evaluates conditions as OpenFGA and SpiceDB do, each by the cel-go that it is built with.
// It reads questions from standard input, one JSON object a line, and writes one answer a line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// A question is a condition with the context that it is evaluated in.
type question struct {
	Parameters map[string]string `json:"parameters"`
	Expression string            `json:"expression"`
	Context    map[string]any    `json:"context"`
}

// An answer is `true`, `false`, `error` or `invalid` for each peer; the messages say why.
type answer struct {
	OpenFGA  string   `json:"openfga"`
	SpiceDB  string   `json:"spicedb"`
	Messages []string `json:"messages"`
}

// A peer compiles and evaluates a question: a *invalidError where it does not compile.
type peer func(question) (bool, error)

type invalidError struct{ cause error }

func (e *invalidError) Error() string { return e.cause.Error() }

func ask(name string, p peer, q question, a *answer) (said string) {
	defer func() {
		if thrown := recover(); thrown != nil {
			a.Messages = append(a.Messages, fmt.Sprintf("%s panics: %v", name, thrown))
			said = "error"
		}
	}()
	met, err := p(q)
	if err != nil {
		a.Messages = append(a.Messages, name+": "+err.Error())
		if _, isInvalid := err.(*invalidError); isInvalid {
			return "invalid"
		}
		return "error"
	}
	return fmt.Sprint(met)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fail(err)
		}
		a := answer{Messages: []string{}}
		a.OpenFGA = ask("OpenFGA", askOpenFGA, q, &a)
		a.SpiceDB = ask("SpiceDB", askSpiceDB, q, &a)
		if err := answers.Encode(a); err != nil {
			fail(err)
		}
	}
	if err := lines.Err(); err != nil {
		fail(err)
	}
	if err := out.Flush(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
