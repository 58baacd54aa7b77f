package main

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// topics are pages of Markdown for which the README has no room. A page's first line is its title.
//
//go:embed help/*.md
var topics embed.FS

// topicNames are what `flexid help` takes beside commands, sorted.
func topicNames() []string {
	entries, err := topics.ReadDir("help")
	if err != nil { // it is part of the binary
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".md"))
	}
	return names
}

func topic(name string) (text string, ok bool) {
	raw, err := topics.ReadFile(path.Join("help", name+".md"))
	return string(raw), err == nil && !strings.Contains(name, "/")
}

// help shows a topic, or what a command does.
func (p *program) help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [TOPIC | COMMAND …]",
		Short: "a page on a topic, or on a command",
		Long:  "A page on a topic, or on a command. Topics:\n\n" + topicList(),
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := topicNames()
			for _, child := range c.Root().Commands() {
				if child.IsAvailableCommand() {
					names = append(names, child.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Root().Help()
			}
			if text, ok := topic(args[0]); ok && len(args) == 1 {
				fmt.Fprint(p.out, text)
				return nil
			}
			found, rest, err := c.Root().Find(args)
			if err != nil || found == c.Root() || len(rest) > 0 {
				return usagef("there is no page on %q; topics are %s, and every command has one", strings.Join(args, " "), strings.Join(topicNames(), ", "))
			}
			return found.Help()
		},
	}
}

func topicList() string {
	var out strings.Builder
	names := topicNames()
	width := len(slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) }))
	for _, name := range names {
		text, _ := topic(name)
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		fmt.Fprintf(&out, "  %-*s  %s\n", width, name, title)
	}
	return out.String()
}
