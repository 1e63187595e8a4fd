"""Settings of what is learnt and how: towers, loss, training."""

from typing import Literal

from pebr_tf.config.corpus import MAX_SEED
from pebr_tf.config.section import Section
from pebr_tf.config.setting import AUTO, setting

# The laws of the cosine are accurate for tau in this range.
_TAU_RANGE = "[0.002, 1]"
_LAYER_RANGE = "[1, 65_536]"
_WEIGHT_RANGE = "[0, 100]"
_WITHOUT_SOFTMAX = ("pointwise", "mle")
# These have one temperature for all queries, so no law of a query whose coverage could be trained.
_WITHOUT_TAU = ("pointwise", "info_nce")
# The paper trains with AdaGrad at 0.05; on short schedules Adam at 0.003 gets further.
_LEARNING_RATES = {"adam": 0.003, "adagrad": 0.05}


class Towers(Section):
    """The two towers, and the head that gives each query its temperature tau."""

    kind: Literal["dssm", "transformer", "bert"] = setting("dssm", "Encoder of both towers")
    dimension: int = setting(AUTO, "Length of query and item vectors", "[2, 4096]", automatic=True)
    token_dimension: int = setting(128, "Length of a token's vector", "[1, 4096]")
    shared_tokens: bool = setting(True, "Both towers use the same token vectors")
    hidden_layers: tuple[int, ...] = setting(
        (256,), "Units of each layer between tokens and vector", _LAYER_RANGE
    )
    dropout: float = setting(0.0, "Share of units dropped in training", "[0, 1)")
    transformer_layers: int = setting(2, "Layers of the transformer", "[1, 48]")
    transformer_heads: int = setting(4, "Attention heads of the transformer", "[1, 64]")
    backbone: str | None = setting(
        None, "Folder of a pretrained BERT for kind bert: config.json, vocab.txt, model.safetensors"
    )
    combine: bool = setting(True, "Kind bert also has the tokens of kind dssm")
    trainable_layers: int = setting(
        0,
        "Layers of the BERT that are trained, from the top; above their number: all of it",
        "[0, 100]",
    )
    max_length: int = setting(128, "Most word pieces of a text that the BERT reads", "[3, 512]")
    query_prefix: str | None = setting(None, "Text before each query that the BERT reads")
    item_prefix: str | None = setting(None, "Text before each item that the BERT reads")
    tau_initial: float = setting(0.05, "Initial tau of every query", _TAU_RANGE)
    tau_min: float = setting(0.002, "Smallest tau", _TAU_RANGE)
    tau_max: float = setting(1.0, "Largest tau", _TAU_RANGE)
    tau_hidden_layers: tuple[int, ...] = setting(
        (64,), "Units of each layer of the tau head", _LAYER_RANGE
    )
    tau_sees_frequency: bool = setting(
        False,
        "Log frequency of the query as an input of the tau head; raises precision, lowers recall",
    )

    def check(self) -> None:
        self.require(
            self.tau_min < self.tau_initial < self.tau_max,
            "tau_initial",
            f"be above tau_min ({self.tau_min}) and below tau_max ({self.tau_max})",
        )
        self.require(
            self.kind != "transformer" or self.token_dimension % self.transformer_heads == 0,
            "token_dimension",
            f"be a multiple of transformer_heads ({self.transformer_heads})",
        )
        self.require(
            self.kind != "bert" or self.backbone is not None,
            "backbone",
            "name a folder when kind is bert",
        )


class Loss(Section):
    """The objective, its negatives and its corrections."""

    family: Literal["pointwise", "info_nce", "mle", "exp_nce", "beta_nce"] = setting(
        "beta_nce", "Loss of the query -> item term"
    )
    convention: Literal["pdf", "paper"] = setting(
        "pdf", "alpha of a query's Beta law: 1 + 1/tau, or 1/tau"
    )
    delta_beta: float = setting(
        0.0, "beta of the relevant items less the background's", "(-1, 100]"
    )
    temperature: float = setting(
        0.05, "Temperature of info_nce and pointwise, which have no tau per query", _TAU_RANGE
    )
    learn_temperature: bool = setting(False, "Train this temperature")
    # A softmax over items leaves each query's level free, and the cut-off needs the level: the
    # item -> query term pins it. Masking known positives helps beside that term; without it, the
    # in-batch false negatives are what teaches tau how broad a query is.
    symmetric_weight: float = setting(
        1.0, "Weight of the item -> query term, which pins the level", _WEIGHT_RANGE
    )
    gamma: float = setting(
        0.0, "Query-prior correction of the item -> query term; more lowers recall", "[0, 1]"
    )
    mask_known_positives: bool = setting(
        True, "Clicked pairs of a batch are no negatives; best with the item -> query term"
    )
    log_q: bool = setting(
        AUTO, "Correct in-batch negatives for item frequency; auto: by a trial", automatic=True
    )
    law_weight: float = setting(
        1.0, "Weight of the law term, which trains alpha, beta and noise; 0: none", _WEIGHT_RANGE
    )
    coverage_weight: float = setting(
        0.0, "Weight of the coverage term, which trains the law; 0: none", _WEIGHT_RANGE
    )
    coverage_recall: tuple[float, ...] = setting(
        (0.9,),
        "Recalls at which coverage is measured and trained",
        "(0, 1)",
        filled=True,
        increasing=True,
    )

    @property
    def has_softmax(self) -> bool:
        """Whether negatives compete in a softmax, which log_q can correct."""
        return self.family not in _WITHOUT_SOFTMAX

    def check(self) -> None:
        if not self.has_softmax:
            self._require_off("symmetric_weight", f"family is {self.family}")
            self._require_off("log_q", f"family is {self.family}")
        if self.family != "beta_nce":
            self._require_off("delta_beta", f"family is {self.family}")
        if self.family in _WITHOUT_TAU:
            self._require_off("coverage_weight", f"family is {self.family}")
        else:
            self._require_off("learn_temperature", f"family is {self.family}")
        if not self.symmetric_weight:
            self._require_off("gamma", "symmetric_weight is 0")

    def _require_off(self, name: str, reason: str) -> None:
        value = getattr(self, name)
        if value == AUTO:
            return
        off = "false" if isinstance(value, bool) else "0"
        self.require(not value, name, f"be {off} when {reason}")


class Training(Section):
    """How long, how fast and on what the towers are trained."""

    optimizer: Literal["adam", "adagrad"] = setting("adam", "Optimizer; the paper's is adagrad")
    learning_rate: float | None = setting(None, "null: 0.003 for adam, 0.05 for adagrad", "(0, 10]")
    batch_size: int = setting(
        AUTO,
        "Pairs per step; the other items of a batch are negatives",
        "[2, 1_048_576]",
        automatic=True,
    )
    steps: int = setting(AUTO, "Most training steps", "[1, 1_000_000_000]", automatic=True)
    validation_interval: int = setting(
        AUTO, "Steps between validations", "[1, 1_000_000_000]", automatic=True
    )
    early_stop_patience: int | None = setting(
        4, "Validations without gain before training ends; null: never", "[1, 1_000]"
    )
    checkpoint_interval: int = setting(500, "Steps between checkpoints", "[1, 1_000_000_000]")
    warm_start: bool = setting(True, "Start from the last blessed model where there is one")
    strategy: Literal["one_device", "mirrored", "multi_worker"] = setting(
        "one_device", "Devices to train on"
    )
    mixed_precision: bool = setting(False, "Compute in 16 bits where that is safe")
    encoder_learning_rate: float = setting(
        2e-5, "Learning rate of the top layer of a BERT that is trained", "(0, 1]"
    )
    layer_decay: float = setting(
        0.9, "Learning rate of each layer below, as a share of that above", "(0, 1]"
    )
    gradient_checkpointing: bool = setting(
        False, "Compute the layers of a BERT again for the gradient, which saves memory"
    )
    shuffle_buffer: int = setting(100_000, "Pairs held in memory to shuffle", "[1, 100_000_000]")
    seed: int = setting(
        0, "Seed of the initial weights and of the order of pairs", f"[0, {MAX_SEED}]"
    )

    @property
    def effective_learning_rate(self) -> float:
        """The learning rate, with null resolved to the optimizer's own."""
        if self.learning_rate is None:
            return _LEARNING_RATES[self.optimizer]
        return self.learning_rate
