package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// agreed asks before something that cannot be taken back. Where nobody can be asked it is not done.
func (p *program) agreed(what string) error {
	if !p.canAsk() {
		return usagef("%s: nothing was changed; --yes does it", what)
	}
	line, err := p.ask(what + ". Type yes to go on: ")
	if err != nil {
		return err
	}
	if !strings.EqualFold(line, "yes") {
		return &exitError{exitFailed, errors.New("nothing was changed")}
	}
	return nil
}

func (p *program) canAsk() bool {
	file, ok := p.in.(*os.File)
	return p.answers || ok && term.IsTerminal(int(file.Fd()))
}

// ask reads one line.
func (p *program) ask(question string) (string, error) {
	fmt.Fprint(p.err, question)
	line, err := bufio.NewReader(p.in).ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", fmt.Errorf("nothing was changed: the answer cannot be read: %w", err)
	}
	return strings.TrimSpace(line), nil
}
