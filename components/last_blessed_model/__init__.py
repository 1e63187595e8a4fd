"""LastBlessedModel: gives a run the model that it starts from, compares with or builds on."""

from components.last_blessed_model.component import LastBlessedModel
