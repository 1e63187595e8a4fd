// Gives a compiled pipeline to the code that Kubeflow Pipelines runs when it receives one.
//
//	kubeflow compile FILE        prints Argo's workflow of a run, which Argo's validator accepts
//	kubeflow times CRON TIME N   prints the N times of a recurring run after a time (RFC 3339)
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	workflowapi "github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v3/workflow/validate"
	"github.com/kubeflow/pipelines/backend/src/apiserver/model"
	"github.com/kubeflow/pipelines/backend/src/apiserver/template"
	"github.com/robfig/cron"
	"sigs.k8s.io/yaml"
)

func main() {
	arguments := os.Args[1:]
	var err error
	switch {
	case len(arguments) == 2 && arguments[0] == "compile":
		err = compile(arguments[1])
	case len(arguments) == 4 && arguments[0] == "times":
		err = times(arguments[1], arguments[2], arguments[3])
	default:
		err = fmt.Errorf("usage: kubeflow compile FILE | times CRON TIME N")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compile(file string) error {
	bytes, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pipeline, err := template.New(bytes)
	if err != nil {
		return err
	}
	run := &model.Run{DisplayName: "run", ServiceAccount: "pipeline-runner"}
	execution, err := pipeline.RunWorkflow(run, template.RunWorkflowOptions{RunId: "1"})
	if err != nil {
		return err
	}
	text := []byte(execution.ToStringForStore())
	workflow := &workflowapi.Workflow{}
	if err := yaml.Unmarshal(text, workflow); err != nil {
		return err
	}
	if _, err := validate.ValidateWorkflow(nil, nil, workflow, validate.ValidateOpts{}); err != nil {
		return err
	}
	fmt.Println(string(text))
	return nil
}

func times(expression string, after string, count string) error {
	schedule, err := cron.Parse(expression)
	if err != nil {
		return err
	}
	next, err := time.Parse(time.RFC3339, after)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for ; number > 0; number-- {
		next = schedule.Next(next)
		fmt.Println(next.Format(time.RFC3339))
	}
	return nil
}
