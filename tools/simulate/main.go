//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/passes/cost"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "network" {
		if err := network(os.Stdout, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "simulate:", err)
			os.Exit(1)
		}
		return
	}
	name := flag.String("model", "falcon-40b-instruct", "model of the library")
	machine := flag.String("machine", "", "machine for --sizing, such as 8xh100, or machines, such as 2x8xh100,400Gbit,5us or FILE.yaml")
	sizing := flag.Bool("sizing", false, "print the cost model's estimates, measure nothing")
	sequences := flag.String("sequences", "1,64", "numbers of sequences for --sizing")
	window := flag.Int("context", 4096, "tokens of each sequence for --sizing")
	tokens := flag.Int("tokens", 16, "tokens of each sequence, measured")
	flag.Parse()
	var err error
	if *sizing {
		err = size(*name, *machine, *sequences, *window)
	} else {
		err = table(*name, *tokens)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// size prints the estimates of all arrangements of a machine.
func size(name, machine, sequences string, window int) error {
	m, err := cost.Named(machine, cost.Known)
	if err != nil {
		return err
	}
	c, err := costsOf(libraryDir, name)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %.1f GB of weights, %.0f kB of keys and values a token\n", name, float64(c.Bytes())/1e9, float64(c.RowBytes())/1e3)
	for text := range strings.SplitSeq(sequences, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("--sequences %s: expected positive numbers", sequences)
		}
		load := cost.Load{Sequences: n, Context: window}
		choice, err := c.Choose(m, load)
		if err != nil {
			return err
		}
		fmt.Println(choice.Explain(load))
	}
	return nil
}

// table measures Table 5 and prints it next to the report and the cost model.
func table(name string, tokens int) error {
	c, err := costsOf(libraryDir, name)
	if err != nil {
		return err
	}
	for _, how := range []struct {
		title string
		model *cost.Model
	}{
		{"as Inferflow: two exchanges a layer", c.ReportExchanges()},
		{"as iflowc: one exchange where attention and feed-forward stand side by side", c},
	} {
		fmt.Printf("%s, %s\n%-8s %24s %24s %24s %8s\n", name, how.title, "", "report: all / one", "estimate: all / one", "measured: all / one", "bubble")
		rows, err := schedules(context.Background(), how.model, cost.Report(), tokens)
		if err != nil {
			return err
		}
		for _, r := range rows {
			p := how.model.Predict(cost.Report(), cost.Spread(len(c.Layers), r.Stages, r.TPSize), cost.Load{Sequences: r.Stages})
			fmt.Printf("%-8s %24s %24s %24s %7.1f%%\n", r.Name, pair(r.Throughput, r.Decode), pair(p.Throughput.Mid, p.Decode.Mid), pair(r.All.Speed, r.One.Speed), 100*r.All.Bubble)
		}
	}
	return nil
}

func pair(all, one float64) string { return fmt.Sprintf("%.1f / %.1f", all, one) }
