// Command bootstrap is every function of the test system: it tells by the event which one it is.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type app struct {
	db    *dynamodb.Client
	queue *sqs.Client
}

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	a := app{dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg)}
	lambda.Start(a.handle)
}

func (a app) handle(ctx context.Context, raw json.RawMessage) (any, error) {
	var e struct {
		Path       string `json:"path"`
		Parameters struct {
			Name string `json:"name"`
		} `json:"pathParameters"`
		Records []events.SQSMessage
		Source  string `json:"source"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(e.Path, "/health"):
		if os.Getenv("SICK") != "" {
			return events.APIGatewayProxyResponse{StatusCode: 503, Body: `"sick"`}, nil
		}
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: os.Getenv("STAGE")}, nil
	case e.Path != "":
		_, err := a.queue.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(os.Getenv("QUEUE")), MessageBody: &e.Parameters.Name})
		return events.APIGatewayProxyResponse{StatusCode: 202}, err
	case e.Source == "aws.events":
		return nil, a.count(ctx, "tick")
	}
	for _, r := range e.Records {
		if err := a.count(ctx, r.Body); err != nil {
			return nil, err
		}
	}
	return events.SQSEventResponse{}, nil
}

func (a app) count(ctx context.Context, name string) error {
	_, err := a.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String(os.Getenv("TABLE")),
		Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: name}}, UpdateExpression: aws.String("ADD n :one SET #by = :by"),
		ExpressionAttributeNames:  map[string]string{"#by": "by"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}, ":by": &types.AttributeValueMemberS{Value: os.Getenv("AWS_SDK_UA_APP_ID")}}})
	return err
}
