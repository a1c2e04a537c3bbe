package sqs

import "fmt"

// fault is an error as SQS reports it: shape is the JSON protocol's name, query the code of the older Query protocol,
// which SDKs show to their callers.
type fault struct {
	shape, query, message string
	status                int
}

func (f *fault) Error() string { return f.query + ": " + f.message }

// legacy prefixes the query codes of the errors that carry it (the model's awsQueryError traits).
const legacy = "AWS.SimpleQueueService."

func clientFault(shape, query, format string, args ...any) *fault {
	return &fault{shape: shape, query: query, message: fmt.Sprintf(format, args...), status: 400}
}

func noQueue() *fault {
	return clientFault("QueueDoesNotExist", legacy+"NonExistentQueue", "The specified queue does not exist.")
}

func invalidParameter(format string, args ...any) *fault {
	return clientFault("InvalidParameterValueException", "InvalidParameterValue", format, args...)
}

// outOfRange refuses a number the way SQS words it.
func outOfRange(name string, value, low, high int) *fault {
	return invalidParameter("Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.", value, name, low, high)
}

func missing(name string) *fault {
	return clientFault("MissingRequiredParameterException", "MissingParameter", "The request must contain the parameter %s.", name)
}

func invalidAttribute(name string) *fault {
	return clientFault("InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter %s.", name)
}

func unknownAttribute(name string) *fault {
	return clientFault("InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute %s.", name)
}

func invalidHandle(handle string) *fault {
	return clientFault("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", "The input receipt handle %q is not valid for this queue.", handle)
}

func noResource(format string, args ...any) *fault {
	return clientFault("ResourceNotFoundException", "ResourceNotFoundException", format, args...)
}
